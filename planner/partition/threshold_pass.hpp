/// Is there a partition whose loads are all below a threshold? See throughput_partition.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/partition_lattice.hpp"

namespace meshwright {

/// What runs on one device: the items of the down-set `end` that are not in `begin`.
struct LatticeStage {
  std::int32_t begin = 0, end = 0;
  bool on_host = false;
};

/// Returns the stages in order, or an empty list if every partition has a load of at least
/// `threshold`. Adds the number of priced stages to `extensions`; std::nullopt if that reaches
/// `most_extensions` first.
std::optional<std::vector<LatticeStage>> find_partition_below(std::int64_t threshold,
                                                              const PartitionLattice& lattice,
                                                              const SignalMembers& signals,
                                                              std::int64_t most_extensions,
                                                              std::int64_t& extensions);

}  // namespace meshwright
