#include "gui/session/edited_schedule.hpp"

#include <algorithm>

#include "planner/search/space.hpp"

namespace meshwright::gui {

std::optional<Schedule> edited_schedule(const Simulation& s, const OrderEdit& edit) {
  if (!s.is_sound() || !s.stage_times) return std::nullopt;
  const auto rank = std::find_if(s.step.graph.ranks.begin(), s.step.graph.ranks.end(),
                                 [&](const RankInfo& r) { return r.rank.value == edit.rank; });
  if (rank == s.step.graph.ranks.end()) return std::nullopt;
  Schedule schedule = s.schedule;
  std::vector<Action>& order = schedule.orders[static_cast<std::size_t>(rank->coordinate.pipeline)];
  const auto count = static_cast<std::int32_t>(order.size());
  if (edit.from < 0 || edit.to < 0 || edit.from >= count || edit.to >= count) return std::nullopt;
  Action moved = order[static_cast<std::size_t>(edit.from)];
  // Moving a pass dissolves the overlapped pairs it was part of.
  moved.overlaps_next = false;
  if (edit.from > 0) order[static_cast<std::size_t>(edit.from - 1)].overlaps_next = false;
  order.erase(order.begin() + edit.from);
  order.insert(order.begin() + edit.to, moved);
  schedule.name = std::string(kSynthesizedSchedule);
  return schedule;
}

std::string problem_of_orders(const Simulation& s, const Schedule& schedule) {
  const ScheduleRule& rule = *find_schedule_rule(kSynthesizedSchedule);
  const ScheduleRequest request = request_of(s.plan.strategy);
  if (rule.problem(request) || rule.placement(request) != schedule.placement ||
      schedule.slices_per_microbatch > 1 || schedule.output_barriers > 0)
    return "manual ordering requires one stage per device, or a wave placement with an even number "
           "of chunks";
  std::vector<std::string> faults = check_schedule(schedule);
  return faults.empty() ? std::string() : faults.front();
}

Scenario with_orders(const Scenario& scenario, const Schedule& schedule) {
  Scenario s = scenario;
  const int devices = schedule.placement.devices;
  const int stages = static_cast<int>(schedule.placement.device_of_stage.size());
  set_pipeline_degree(s, devices);
  set_chunks(s, std::max(1, stages / std::max(1, devices)));
  set_microbatches(s, schedule.microbatch_count);
  s.strategy.schedule = kSynthesizedSchedule;
  s.orders = schedule.orders;
  return s;
}

}  // namespace meshwright::gui
