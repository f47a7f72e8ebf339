/// Rejects candidates that do not fit in memory, before simulation.
#pragma once

#include <optional>

#include "core/base/units.hpp"
#include "planner/search/prospects.hpp"
#include "planner/search/search.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"

namespace meshwright {

struct MemoryShortfall {
  Bytes needed, capacity;
  int position = 0;  ///< pipeline rank with the peak
  friend bool operator==(const MemoryShortfall&, const MemoryShortfall&) = default;
};

/// The plan of a prospect. Recomputation of some blocks must have a number of blocks.
Plan plan_of(const Prospect& prospect, const SearchJob& job);

/// Compares the peak of every pipeline rank with the device memory; nullopt if the plan fits.
/// Counts only the passes, so a rejected plan cannot fit; see peak_of_passes().
std::optional<MemoryShortfall> shortfall_of(const Plan& plan, const SearchJob& job);
/// The same for a lowered graph, including the optimizer step.
std::optional<MemoryShortfall> shortfall_of(const TaskGraph& graph, const JobFacts& facts);

/// The reason to prune a prospect, if any; `shortfall` is set if it does not fit. For recomputation
/// of some blocks, sets the smallest number of blocks that fits, by bisection: every block beyond
/// the first only frees memory. Such a prospect is dominated if it needs no block or all blocks.
std::optional<PruneReason> screen_memory(Prospect& prospect, const SearchJob& job,
                                         MemoryShortfall& shortfall);

}  // namespace meshwright
