#include "planner/partition/kernel_part.hpp"

#include <cmath>

namespace meshwright {
namespace {

/// The largest of the parts, relative to equal ones.
constexpr double kMostUneven = 1.05;

double product_bytes(const Kernel& kernel) {
  const double m = static_cast<double>(kernel.m), n = static_cast<double>(kernel.n),
               k = static_cast<double>(kernel.k);
  return static_cast<double>(kernel.batch) * (m * k + k * n + m * n);
}

/// Of the sizes m, n and k of a kernel of the unit whose product is `product`, the divided one. The
/// gradient of the left operand has m rows, k columns and the depth n, that of the right one k
/// rows, n columns and the depth m.
std::int64_t Kernel::*divided_size(const Kernel& kernel, const Kernel& product, ProductSide side) {
  if (side == ProductSide::kBatch) return &Kernel::batch;
  const bool is_rows = side == ProductSide::kRows, is_columns = side == ProductSide::kColumns;
  if (kernel.phase == Phase::kForward)
    return is_rows ? &Kernel::m : is_columns ? &Kernel::n : &Kernel::k;
  const bool is_left = kernel.m == product.m && kernel.n == product.k && kernel.k == product.n &&
                       (kernel.phase == Phase::kBackwardInput || kernel.m != kernel.k);
  if (is_left) return is_rows ? &Kernel::m : is_columns ? &Kernel::k : &Kernel::n;
  return is_rows ? &Kernel::k : is_columns ? &Kernel::n : &Kernel::m;
}

}  // namespace

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelKind::kGemm || kernel.kind == KernelKind::kGroupedGemm;
}

std::int64_t DevicePart::of(std::int64_t size) const {
  constexpr double kRounding = 1e-9;
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(size) * value() * (1 - kRounding)));
}

bool can_be_sharded(const KernelSharding& sharding, int devices) {
  return sharding.parts >= devices &&
         part_of_device(sharding, devices).value() * devices <= kMostUneven;
}

DevicePart part_of_device(const KernelSharding& sharding, int devices) {
  return {.local = divide_up(sharding.parts, std::int64_t{devices}), .parts = sharding.parts};
}

Kernel part_of_kernel(Kernel kernel, const Kernel* product, const KernelSharding& sharding,
                      const DevicePart& part) {
  const double whole = product_bytes(kernel);
  double traffic = part.value();
  if (is_product(kernel) && product != nullptr) {
    std::int64_t& size = kernel.*divided_size(kernel, *product, sharding.side);
    size = part.of(size);
    traffic = whole > 0 ? product_bytes(kernel) / whole : traffic;
  } else if (kernel.kind == KernelKind::kAttention) {
    kernel.batch = part.of(kernel.batch);
  } else if (product != nullptr) {  // sums of the gradients of results
    traffic = sharding.side == ProductSide::kDepth ? 1 : traffic;
  } else {
    traffic = sharding.traffic * traffic + (1 - sharding.traffic);
  }
  kernel.flops = part.value() * kernel.flops;
  kernel.memory_traffic = Bytes(static_cast<std::int64_t>(
      std::ceil(traffic * static_cast<double>(kernel.memory_traffic.value))));
  return kernel;
}

}  // namespace meshwright
