/// Schedules of many micro-batches from schedules of few, by repeating the steady state.
#pragma once

#include <optional>

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// Two moments of a schedule are equivalent if every device has started the same actions, shifted
/// by k micro-batches. The section between them can be repeated: memory and precedences remain
/// valid (Tessel calls it the repetend). Among all such pairs right before forwards of the first
/// stage, takes the one with the least time per micro-batch whose k divides the number of missing
/// micro-batches.
///
/// `schedule` must be valid, with one route and at most `microbatches` micro-batches. nullopt if no
/// moments are equivalent. O(m p) time and O(m^2 S) comparisons for m micro-batches of `schedule`
/// and S stages.
std::optional<Schedule> repeat_steadily(const Schedule& schedule, const StageTimes& times,
                                        int microbatches);

}  // namespace meshwright
