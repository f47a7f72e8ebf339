/// Results of the command `schedule`: a schedule, its timing, and lower bounds.
#pragma once

#include <string>
#include <vector>

#include "cli/schedule/schedule_flags.hpp"
#include "cli/terminal/document.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {

struct ScheduleFigures {
  Schedule schedule;
  ScheduleTiming timing;  ///< peaks in whole micro-batches, also for sliced schedules
  Ticks makespan_bound, period_bound;
  std::string origin;                ///< synthesis method; empty for named schedules
  std::vector<int> weight_versions;  ///< by device
};

/// A named schedule with the times of the flags. InputError for an unknown name, for parameters the
/// schedule does not accept, and for a peak above the cap.
ScheduleFigures named_schedule(const ScheduleFlags& flags);
/// The best schedule found by synthesis within the cap; at least as fast as every named schedule
/// with the same placement within the cap.
ScheduleFigures synthesized_schedule(const ScheduleFlags& flags);
/// The schedule of --check. InputError with every fault: device, action and reason.
ScheduleFigures checked_schedule(const ScheduleFlags& flags);

/// As text with one line per device, as tables of the same figures for formats other than text, and
/// as JSON: a contract that scripts rely on.
std::string schedule_text(const ScheduleFigures& figures, const ScheduleFlags& flags);
Document schedule_tables(const ScheduleFigures& figures, const ScheduleFlags& flags);
std::string schedule_json(const ScheduleFigures& figures, const ScheduleFlags& flags);

}  // namespace meshwright
