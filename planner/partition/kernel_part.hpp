/// The part of a kernel that one of several tensor-parallel devices computes.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"
#include "core/model/kernel_graph.hpp"

namespace meshwright {

/// Of `parts` equal parts of a dimension, those of the device that has most of them.
struct DevicePart {
  std::int64_t local = 1, parts = 1;
  double value() const { return static_cast<double>(local) / static_cast<double>(parts); }
  /// Of a size that is a multiple of the parts, or of a sum of such sizes; rounded up.
  std::int64_t of(std::int64_t size) const;
  Bytes of(Bytes bytes) const { return Bytes(of(bytes.value)); }
};

/// True if every device has a part, and none much more than others.
bool can_be_sharded(const KernelSharding& sharding, int devices);
DevicePart part_of_device(const KernelSharding& sharding, int devices);

bool is_product(const Kernel& kernel);

/// A kernel of a unit whose product is `product` (null: it has none), in either direction.
Kernel part_of_kernel(Kernel kernel, const Kernel* product, const KernelSharding& sharding,
                      const DevicePart& part);

}  // namespace meshwright
