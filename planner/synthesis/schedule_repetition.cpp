#include "planner/synthesis/schedule_repetition.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/base/check.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

/// The state of a schedule right before a forward of the first stage.
struct Moment {
  Ticks time;
  int microbatch = 0;              ///< of that forward
  std::vector<std::size_t> begun;  ///< by device: number of actions started
  std::vector<int> passed;         ///< by stage and pass: actions started, minus `microbatch`
};

struct Event {
  Ticks start, end;
  std::size_t device = 0, position = 0;
};

std::vector<Event> events_in_time(const Schedule& schedule, const ScheduleTiming& timing) {
  std::vector<Event> events;
  for (std::size_t d = 0; d < schedule.orders.size(); ++d)
    for (std::size_t k = 0; k < schedule.orders[d].size(); ++k)
      events.push_back({timing.starts[d][k], timing.ends[d][k], d, k});
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.start, a.end, a.device, a.position) <
           std::tuple(b.start, b.end, b.device, b.position);
  });
  return events;
}

std::vector<Moment> moments_of(const Schedule& schedule, const StageTimes& times) {
  constexpr std::size_t kPassKinds = 4;
  const StageId first_stage = schedule.placement.routes.front().front();
  std::vector<Moment> moments;
  std::vector<std::size_t> begun(schedule.orders.size(), 0);
  std::vector<int> passed(kPassKinds * schedule.placement.device_of_stage.size(), 0);
  for (const Event& event : events_in_time(schedule, time_schedule(schedule, times))) {
    const Action& action = schedule.orders[event.device][event.position];
    if (action.stage == first_stage && action.pass == Pass::kForward) {
      moments.push_back({event.start, action.microbatch.value, begun, passed});
    }
    ++begun[event.device];
    ++passed[action.stage.index() * kPassKinds + static_cast<std::size_t>(action.pass)];
  }
  for (Moment& moment : moments)
    for (std::size_t i = 0; i < passed.size(); ++i)
      if (passed[i] > 0)
        moment.passed[i] -= moment.microbatch;  // whole or split backward, not both
  return moments;
}

/// Repeats the actions between the two moments `extra` more times.
Schedule repeated(const Schedule& schedule, const Moment& from, const Moment& to, int extra) {
  Schedule longer = schedule;
  const int step = to.microbatch - from.microbatch;
  longer.microbatch_count += extra * step;
  longer.route_of_microbatch.assign(static_cast<std::size_t>(longer.microbatch_count), 0);
  for (std::size_t d = 0; d < schedule.orders.size(); ++d) {
    const std::vector<Action>& order = schedule.orders[d];
    std::vector<Action>& actions = longer.orders[d];
    actions.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(to.begun[d]));
    const auto append = [&](std::size_t begin, std::size_t end, int shift) {
      for (std::size_t k = begin; k < end; ++k) {
        actions.push_back(order[k]);
        actions.back().microbatch = MicrobatchId(order[k].microbatch.value + shift);
      }
    };
    for (int i = 1; i <= extra; ++i) append(from.begun[d], to.begun[d], i * step);
    append(to.begun[d], order.size(), extra * step);
  }
  return longer;
}

}  // namespace

std::optional<Schedule> repeat_steadily(const Schedule& schedule, const StageTimes& times,
                                        int microbatches) {
  MW_CHECK(schedule.placement.routes.size() == 1);
  const int missing = microbatches - schedule.microbatch_count;
  MW_CHECK(missing >= 0);
  if (missing == 0) return schedule;
  const std::vector<Moment> moments = moments_of(schedule, times);
  const Moment *from = nullptr, *to = nullptr;
  for (std::size_t i = 0; i < moments.size(); ++i)
    for (std::size_t j = i + 1; j < moments.size(); ++j) {
      const int step = moments[j].microbatch - moments[i].microbatch;
      if (missing % step != 0 || moments[i].passed != moments[j].passed) continue;
      const Ticks length = moments[j].time - moments[i].time;
      if (from != nullptr && length.value * (to->microbatch - from->microbatch) >=
                                 (to->time - from->time).value * step)
        continue;
      from = &moments[i];
      to = &moments[j];
    }
  if (from == nullptr) return std::nullopt;
  Schedule longer = repeated(schedule, *from, *to, missing / (to->microbatch - from->microbatch));
  // Zero-duration actions may start together on several devices; the cut can then be invalid.
  if (!check_schedule(longer).empty()) return std::nullopt;
  return longer;
}

}  // namespace meshwright
