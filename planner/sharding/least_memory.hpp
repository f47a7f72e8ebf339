/// Which strategies exceed the limit of memory even if all other nodes use as little as they can.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/sharding/memory_profile.hpp"

namespace meshwright {

class LeastMemory {
 public:
  /// `left` as in MemoryProfile.
  explicit LeastMemory(std::span<const double> left);

  /// Adds a node with the least memory at every time among its `allowed` strategies.
  void add(const MemoryChanges& changes, std::span<const std::int32_t> allowed);
  /// After all nodes. False: the limit is exceeded in any case.
  bool finish();
  /// Those of `allowed` that exceed the limit beside the least of the other nodes.
  std::vector<std::int32_t> exceeding(const MemoryChanges& changes,
                                      std::span<const std::int32_t> allowed) const;

 private:
  /// The largest sum at the times [first, last).
  double most(std::size_t first, std::size_t last) const;

  std::size_t times_;
  /// What is used beyond the limit. [0]: by time; [i]: the largest of 2^i times from each on.
  std::vector<std::vector<double>> over_;
};

}  // namespace meshwright
