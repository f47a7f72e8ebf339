#include "planner/synthesis/schedule_route_bounds.hpp"

#include <algorithm>

namespace meshwright {
namespace {

Ticks entry(const std::vector<Ticks>& list, std::size_t s) {
  return list.empty() ? Ticks() : list[s];
}

Ticks duration_of(const Action& action, const StageTimes& times) {
  const std::size_t s = action.stage.index();
  switch (action.pass) {
    case Pass::kForward:
      return times.forward[s];
    case Pass::kBackward:
      return times.backward_input[s] + times.backward_weight[s];
    case Pass::kBackwardInput:
      return times.backward_input[s];
    case Pass::kBackwardWeight:
      return times.backward_weight[s];
    case Pass::kOutputScores:
      return entry(times.output_scores, s);
    case Pass::kOutputGradient:
      break;
  }
  return entry(times.output_gradients, s);
}

Ticks work_of(const std::vector<Action>& order, const StageTimes& times) {
  Ticks work;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool is_pair = order[i].overlaps_next && i + 1 < order.size();
    if (is_pair && !times.overlapped_pair.empty()) {
      const Action& forward = order[i].pass == Pass::kForward ? order[i] : order[i + 1];
      work += times.overlapped_pair[forward.stage.index()];
      ++i;
    } else {
      work += duration_of(order[i], times);
    }
  }
  return work;
}

Ticks lag(const Schedule& schedule, const StageTimes& times, StageId from, StageId to) {
  const auto& device = schedule.placement.device_of_stage;
  return device[from.index()] == device[to.index()] ? Ticks() : latency_between(times, from, to);
}

/// Shortest path of a micro-batch to each device.
std::vector<Ticks> heads_of(const Schedule& schedule, const StageTimes& times) {
  std::vector<Ticks> heads(schedule.orders.size(), Ticks::max());
  for (const int r : schedule.route_of_microbatch) {
    const auto& route = schedule.placement.routes[static_cast<std::size_t>(r)];
    Ticks way;
    for (std::size_t i = 0; i < route.size(); ++i) {
      if (i > 0)
        way += times.forward[route[i - 1].index()] + lag(schedule, times, route[i - 1], route[i]);
      Ticks& head = heads[schedule.placement.device_of_stage[route[i].index()].index()];
      head = std::min(head, way);
    }
  }
  return heads;
}

/// Time between forward and backward of the last stage: S and T, and the barriers before S, T and
/// B.
Ticks output_layer(const Schedule& schedule, const StageTimes& times) {
  if (schedule.output_barriers == 0) return Ticks();
  Ticks scores, gradients;
  for (const Ticks time : times.output_scores) scores = std::max(scores, time);
  for (const Ticks time : times.output_gradients) gradients = std::max(gradients, time);
  return scores + (schedule.output_barriers == 2 ? gradients : Ticks()) +
         times.barrier * (1 + schedule.output_barriers);
}

Ticks there_and_back(const Schedule& schedule, const StageTimes& times,
                     const std::vector<StageId>& route) {
  Ticks way = output_layer(schedule, times);
  for (std::size_t i = 0; i < route.size(); ++i) {
    const std::size_t s = route[i].index();
    const std::int64_t rounds = i + 1 == route.size() ? schedule.slices_per_microbatch : 1;
    way += (times.forward[s] + times.backward_input[s]) * rounds;
    if (i > 0) way += lag(schedule, times, route[i - 1], route[i]) * 2;
  }
  return way + times.backward_weight[route.front().index()];
}

}  // namespace

Ticks busiest_device_work(const Schedule& schedule, const StageTimes& times) {
  Ticks most;
  for (const auto& order : schedule.orders) most = std::max(most, work_of(order, times));
  return most;
}

Ticks route_bound(const Schedule& schedule, const StageTimes& times) {
  // Overlapped pairs may be shorter than the sum of their passes: only their work counts, not the
  // path through them.
  if (!times.overlapped_pair.empty()) return busiest_device_work(schedule, times);
  Ticks bound;
  const std::vector<Ticks> heads = heads_of(schedule, times);
  for (std::size_t d = 0; d < schedule.orders.size(); ++d)
    if (!schedule.orders[d].empty())
      bound = std::max(bound, heads[d] + work_of(schedule.orders[d], times));
  for (const int r : schedule.route_of_microbatch)
    bound = std::max(bound, there_and_back(schedule, times,
                                           schedule.placement.routes[static_cast<std::size_t>(r)]));
  return bound;
}

}  // namespace meshwright
