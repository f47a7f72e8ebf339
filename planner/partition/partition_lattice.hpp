/// The down-sets of an operator graph, with sums over what is in them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/partition_problem.hpp"
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

}  // namespace meshwright
