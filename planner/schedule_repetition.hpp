/// Schedules of many micro-batches from schedules of few: the steady part, repeated.
#pragma once

#include <optional>

#include "core/schedule.hpp"
#include "core/stage_times.hpp"

namespace meshwright {

/// Two moments of a schedule are alike if every device has done as much of every pass and stage,
/// but for k micro-batches more. What lies between them can be done again and again: memory and
/// precedences are as they were (Tessel calls it the repetend). Of all such pairs just before
/// forwards of the first stage this takes the one with the least time per micro-batch whose k
/// divides what is missing.
///
/// `schedule`: one route, sound, no more than `microbatches`. Nothing if no moments are alike.
/// O(m p) in time and O(m^2 S) comparisons, m those of `schedule`, S its stages.
std::optional<Schedule> repeat_steadily(const Schedule& schedule, const StageTimes& times,
                                        int microbatches);

}  // namespace meshwright
