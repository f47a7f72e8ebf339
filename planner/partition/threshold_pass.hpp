/// Is there a partition whose loads are all below a threshold? See throughput_partition.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/partition/down_sets.hpp"
#include "planner/partition/partition_items.hpp"

namespace meshwright {

/// Sums over items. `load` bounds what they add to a stage: their time and all their signals.
struct PartitionPotential {
  std::int64_t time = 0, load = 0, memory = 0;
  PartitionPotential& operator+=(const PartitionPotential& other);
  PartitionPotential& operator-=(const PartitionPotential& other);
};

/// What cannot join a stage if an item does not.
struct PartitionDependents {
  PartitionPotential own;     ///< the item, and dependents that depend on no item unordered with it
  PartitionPotential shared;  ///< the other dependents
};

/// What the passes over one lattice of down-sets share. Times in picoseconds.
struct PartitionLattice {
  const PartitionItems* items = nullptr;
  DownSets sets;
  std::vector<PartitionPotential> of_item;
  std::vector<PartitionDependents> dependents;  ///< by item
  std::vector<PartitionPotential> of_set;
  std::vector<std::int64_t> cut;  ///< by set: of signals with members inside and outside
  int accelerators = 1;
  int hosts = 0;
  std::int64_t accelerator_memory = 0;
};

/// Signals are hyperedges: a device pays for those with a member in its stage and one elsewhere.
struct SignalMembers {
  explicit SignalMembers(const PartitionItems& items);
  std::vector<std::vector<std::int32_t>> members;  ///< by signal: home and readers
  std::vector<std::int64_t> time;                  ///< by signal
  std::vector<std::vector<std::int32_t>> of_item;  ///< signals by item
};

PartitionLattice make_lattice(const PartitionItems& items, const SignalMembers& signals,
                              DownSets sets, const PartitionProblem& problem);

/// What runs on one device: the items of the down-set `end` that are not in `begin`.
struct LatticeStage {
  std::int32_t begin = 0, end = 0;
  bool on_host = false;
};

/// The stages in order; none if there is no partition with all loads below `threshold`. Adds the
/// number of priced stages to `extensions`; empty if it reaches `most_extensions`.
std::optional<std::vector<LatticeStage>> find_partition_below(std::int64_t threshold,
                                                              const PartitionLattice& lattice,
                                                              const SignalMembers& signals,
                                                              std::int64_t most_extensions,
                                                              std::int64_t& extensions);

}  // namespace meshwright
