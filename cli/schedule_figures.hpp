/// What the command `schedule` finds out: an order of work, its times, and what no order can beat.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "core/schedule_timing.hpp"

namespace meshwright {

struct ScheduleFigures {
  Schedule schedule;
  ScheduleTiming timing;  ///< peaks in whole micro-batches, whatever the slices
  Ticks makespan_bound, period_bound;
  std::string origin;                ///< what found it; empty for schedules with a name
  std::vector<int> weight_versions;  ///< by device
};

/// A rule of the zoo with the flags' times. InputError for an unknown name and for a peak above the
/// cap; UsageError for what the rule does not accept.
ScheduleFigures named_schedule(const ScheduleFlags& flags);
/// The best that search finds within the cap; no schedule of the zoo with the same placement that
/// keeps the cap is better.
ScheduleFigures synthesised_schedule(const ScheduleFlags& flags);
/// Somebody's CSV. InputError with every fault: device, action and why.
ScheduleFigures checked_schedule(const ScheduleFlags& flags);

/// As text, one order a line; and the contract that scripts rely on.
std::string schedule_text(const ScheduleFigures& figures, const ScheduleFlags& flags);
std::string schedule_json(const ScheduleFigures& figures, const ScheduleFlags& flags);

/// Throws UsageError.
[[noreturn]] void refuse_flag(const std::string& flag, std::string what, std::string hint);

}  // namespace meshwright
