/// What does not fit, told by counting before anything is simulated.
#pragma once

#include <optional>

#include "core/units.hpp"
#include "planner/prospects.hpp"
#include "planner/search.hpp"
#include "simulator/simulate.hpp"

namespace meshwright {

struct MemoryShortfall {
  Bytes needed, capacity;
  int position = 0;  ///< in the pipeline, where it is needed
  friend bool operator==(const MemoryShortfall&, const MemoryShortfall&) = default;
};

/// The plan of a prospect. Recomputation of some blocks must have its number.
Plan plan_of(const Prospect& prospect, const Job& job);

/// Peak of every pipeline position against the device, for a plan as it is; nothing if it fits.
/// Counts the passes only, so what it turns down cannot fit; see peak_of_passes().
std::optional<MemoryShortfall> shortfall_of(const Plan& plan, const Job& job);
/// The same from a lowered graph, complete.
std::optional<MemoryShortfall> shortfall_of(const TaskGraph& graph, const JobFacts& facts);

/// Why a prospect need not be simulated, if so; then `shortfall` says by how much it does not fit.
/// Recomputation of some blocks gets the smallest number that fits: bisection, since from one block
/// on every further one only frees memory. It is dominated if none is needed, or if it takes all.
std::optional<PruneReason> screen_memory(Prospect& prospect, const Job& job,
                                         MemoryShortfall& shortfall);

}  // namespace meshwright
