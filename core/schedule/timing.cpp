#include "core/schedule/timing.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

class ScheduleTimer {
 public:
  ScheduleTimer(const Schedule& schedule, const StageTimes& times);
  ScheduleTiming run();

 private:
  /// State of a sharded output layer for one micro-batch.
  struct OutputLayer {
    Ticks scores = kNotSent, gradient = kNotSent;  ///< when S and T may start
    Ticks joined = kNotSent;                       ///< end of the barrier after T
    Ticks last_scores, last_gradient;              ///< latest end over the devices so far
    std::size_t open_scores = 0, open_gradients = 0;
  };
  std::size_t cell(StageId stage, MicrobatchId mb) const {
    return mb.index() * stage_count_ + stage.index();
  }
  std::size_t device_of(StageId stage) const {
    return schedule_.placement.device_of_stage[stage.index()].index();
  }
  const std::vector<StageId>& route_of(MicrobatchId mb) const {
    const auto route = static_cast<std::size_t>(schedule_.route_of_microbatch[mb.index()]);
    return schedule_.placement.routes[route];
  }
  Ticks arrival_of_inputs(const Action& action) const;
  Ticks duration_of(const Action& action) const;
  Ticks end_of_blocking_barrier(std::size_t device) const;
  bool try_step(std::size_t device);
  void finish(const Action& action, Ticks end);
  void finish_output(const Action& action, Ticks end);
  void send(StageId from, StageId to, Ticks end, Ticks& arrival);
  void summarise();

  const Schedule& schedule_;
  const StageTimes& times_;
  std::size_t stage_count_;
  std::vector<std::int32_t> route_position_;  ///< by route x stage: index of the stage on the route
  std::vector<Ticks> activation_arrival_;     ///< by cell: arrival of the input of F
  std::vector<Ticks> gradient_arrival_;       ///< by cell: arrival of the input of B or I
  std::vector<OutputLayer> output_;           ///< by micro-batch; empty if not sharded
  std::vector<Ticks> link_free_;              ///< by sender x receiver
  std::vector<Ticks> device_free_;
  std::vector<std::size_t> next_;
  ScheduleTiming timing_;
};

ScheduleTimer::ScheduleTimer(const Schedule& schedule, const StageTimes& times)
    : schedule_(schedule), times_(times), stage_count_(schedule.placement.device_of_stage.size()) {
  MW_CHECK(times.forward.size() == stage_count_);
  MW_CHECK(times.backward_input.size() == stage_count_);
  MW_CHECK(times.backward_weight.size() == stage_count_);
  MW_CHECK(times.overlapped_pair.empty() || times.overlapped_pair.size() == stage_count_);
  const auto devices = static_cast<std::size_t>(schedule.placement.devices);
  const auto microbatches = static_cast<std::size_t>(schedule.microbatch_count);
  const auto& routes = schedule.placement.routes;
  route_position_.assign(routes.size() * stage_count_, 0);
  for (std::size_t r = 0; r < routes.size(); ++r)
    for (std::size_t i = 0; i < routes[r].size(); ++i)
      route_position_[r * stage_count_ + routes[r][i].index()] = static_cast<std::int32_t>(i);
  activation_arrival_.assign(stage_count_ * microbatches, kNotSent);
  gradient_arrival_.assign(stage_count_ * microbatches, kNotSent);
  for (std::size_t mb = 0; mb < microbatches; ++mb)
    activation_arrival_[cell(route_of(MicrobatchId(mb)).front(), MicrobatchId(mb))] = Ticks(0);
  if (schedule.output_barriers > 0) {
    output_.resize(microbatches);
    for (OutputLayer& output : output_) output.open_scores = output.open_gradients = stage_count_;
  }
  link_free_.assign(devices * devices, Ticks(0));
  device_free_.assign(devices, Ticks(0));
  next_.assign(devices, 0);
  timing_.starts.resize(devices);
  timing_.ends.resize(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    timing_.starts[d].reserve(schedule.orders[d].size());
    timing_.ends[d].reserve(schedule.orders[d].size());
  }
}

Ticks ScheduleTimer::arrival_of_inputs(const Action& action) const {
  switch (action.pass) {
    case Pass::kForward:
      return activation_arrival_[cell(action.stage, action.microbatch)];
    case Pass::kBackward:
    case Pass::kBackwardInput:
      return gradient_arrival_[cell(action.stage, action.microbatch)];
    case Pass::kBackwardWeight:
      return Ticks(0);  // its I ran before on the same device
    case Pass::kOutputScores:
      return output_.empty() ? Ticks(0) : output_[action.microbatch.index()].scores;
    case Pass::kOutputGradient:
      return output_.empty() ? Ticks(0) : output_[action.microbatch.index()].gradient;
  }
  MW_CHECK(false);
}

Ticks ScheduleTimer::duration_of(const Action& action) const {
  const std::size_t s = action.stage.index();
  switch (action.pass) {
    case Pass::kForward:
      return times_.forward[s];
    case Pass::kBackward:
      return times_.backward_input[s] + times_.backward_weight[s];
    case Pass::kBackwardInput:
      return times_.backward_input[s];
    case Pass::kBackwardWeight:
      return times_.backward_weight[s];
    case Pass::kOutputScores:
      return times_.output_scores.empty() ? Ticks(0) : times_.output_scores[s];
    case Pass::kOutputGradient:
      return times_.output_gradients.empty() ? Ticks(0) : times_.output_gradients[s];
  }
  MW_CHECK(false);
}

void ScheduleTimer::send(StageId from, StageId to, Ticks end, Ticks& arrival) {
  const std::size_t sender = device_of(from);
  const std::size_t receiver = device_of(to);
  if (sender == receiver) {
    arrival = end;
    return;
  }
  Ticks& free = link_free_[sender * device_free_.size() + receiver];
  const Ticks start = std::max(end, free);
  free = start + times_.link_occupancy;
  arrival = start + latency_between(times_, from, to);
}

/// The next pass starts after the last shard of this pass has ended and the barrier has completed.
void ScheduleTimer::finish_output(const Action& action, Ticks end) {
  const bool is_scores = action.pass == Pass::kOutputScores;
  OutputLayer& output = output_[action.microbatch.index()];
  std::size_t& open = is_scores ? output.open_scores : output.open_gradients;
  Ticks& last = is_scores ? output.last_scores : output.last_gradient;
  last = std::max(last, end);
  if (--open > 0) return;
  const Ticks joined = last + times_.barrier;
  (is_scores ? output.gradient : output.joined) = joined;
  if (schedule_.output_barriers == (is_scores ? 1 : 2))
    gradient_arrival_[cell(route_of(action.microbatch).back(), action.microbatch)] = joined;
}

void ScheduleTimer::finish(const Action& action, Ticks end) {
  if (action.pass == Pass::kBackwardWeight) return;
  if (action.pass == Pass::kOutputScores || action.pass == Pass::kOutputGradient)
    return finish_output(action, end);
  const MicrobatchId mb = action.microbatch;
  const auto& route = route_of(mb);
  const auto row = static_cast<std::size_t>(schedule_.route_of_microbatch[mb.index()]);
  const auto place =
      static_cast<std::size_t>(route_position_[row * stage_count_ + action.stage.index()]);
  if (action.pass == Pass::kForward) {
    if (place + 1 == route.size() && !output_.empty())
      output_[mb.index()].scores = end + times_.barrier;
    else if (place + 1 == route.size())
      gradient_arrival_[cell(action.stage, mb)] = end;  // the loss is part of the last stage
    else
      send(action.stage, route[place + 1], end, activation_arrival_[cell(route[place + 1], mb)]);
  } else if (place > 0) {
    send(action.stage, route[place - 1], end, gradient_arrival_[cell(route[place - 1], mb)]);
  }
}

/// The barrier after the previous action of the device, if passes wait for it.
Ticks ScheduleTimer::end_of_blocking_barrier(std::size_t device) const {
  const std::size_t at = next_[device];
  if (!schedule_.output_layer_blocks || at == 0) return Ticks(0);
  const Action& previous = schedule_.orders[device][at - 1];
  return previous.pass == Pass::kOutputGradient ? output_[previous.microbatch.index()].joined
                                                : Ticks(0);
}

bool ScheduleTimer::try_step(std::size_t device) {
  const auto& order = schedule_.orders[device];
  const std::size_t at = next_[device];
  if (at == order.size()) return false;
  const Action& action = order[at];
  Ticks arrival = std::max(arrival_of_inputs(action), end_of_blocking_barrier(device));
  Ticks duration = duration_of(action);
  if (action.overlaps_next) {
    const Action& other = order[at + 1];
    arrival = std::max(arrival, arrival_of_inputs(other));
    const StageId forward = action.pass == Pass::kForward ? action.stage : other.stage;
    duration = times_.overlapped_pair.empty() ? duration + duration_of(other)
                                              : times_.overlapped_pair[forward.index()];
  }
  if (arrival == kNotSent) return false;
  const Ticks start = std::max(device_free_[device], arrival);
  const Ticks end = start + duration;
  device_free_[device] = end;
  const std::size_t count = action.overlaps_next ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i) {
    timing_.starts[device].push_back(start);
    timing_.ends[device].push_back(end);
    finish(order[at + i], end);
  }
  next_[device] += count;
  return true;
}

void ScheduleTimer::summarise() {
  std::optional<Ticks> first;
  Ticks last;
  Ticks work;
  for (std::size_t d = 0; d < next_.size(); ++d) {
    if (timing_.starts[d].empty()) continue;
    const Ticks start = timing_.starts[d].front();
    const Ticks end = timing_.ends[d].back();
    first = std::min(first.value_or(start), start);
    last = std::max(last, end);
    timing_.period = std::max(timing_.period, end - start);
    for (std::size_t i = 0; i < timing_.ends[d].size(); ++i) {
      work += timing_.ends[d][i] - timing_.starts[d][i];
      if (schedule_.orders[d][i].overlaps_next) ++i;  // the pair shares one span
    }
  }
  timing_.makespan = last - first.value_or(Ticks(0));
  const auto devices = static_cast<std::int64_t>(next_.size());
  if (timing_.period > Ticks(0)) {
    timing_.makespan_bubble = 1 - ratio(work, timing_.makespan * devices);
    timing_.period_bubble = 1 - ratio(work, timing_.period * devices);
  }
}

ScheduleTiming ScheduleTimer::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < next_.size(); ++d)
      while (try_step(d)) moved = true;
  }
  for (std::size_t d = 0; d < next_.size(); ++d) MW_CHECK(next_[d] == schedule_.orders[d].size());
  summarise();
  timing_.peak_activations = peak_activations(schedule_);
  return std::move(timing_);
}

/// Number of stages of the device that one micro-batch visits: one "whole device". Replicas of a
/// bidirectional schedule count once.
int chunks_of_device(const Placement& placement, PipelineRankId device) {
  int most = 1;
  for (const auto& route : placement.routes) {
    const auto chunks = std::count_if(route.begin(), route.end(), [&](StageId s) {
      return placement.device_of_stage[s.index()] == device;
    });
    most = std::max(most, static_cast<int>(chunks));
  }
  return most;
}

}  // namespace

ScheduleTiming time_schedule(const Schedule& schedule, const StageTimes& times) {
  return ScheduleTimer(schedule, times).run();
}

std::vector<double> peak_activations(const Schedule& schedule, double freed_by_input_gradient) {
  std::vector<double> peaks;
  for (std::size_t d = 0; d < schedule.orders.size(); ++d) {
    const auto& order = schedule.orders[d];
    // Counted in whole stages and finished input gradients, so that rounding does not accumulate.
    std::int64_t held = 0;
    std::int64_t half_freed = 0;
    double peak = 0;
    for (const Action& action : order) {
      const bool forward_follows = action.overlaps_next && action.pass != Pass::kForward;
      if (forward_follows) {
        const double with_forward = static_cast<double>(held + 1) -
                                    freed_by_input_gradient * static_cast<double>(half_freed);
        peak = std::max(peak, with_forward);
      }
      if (action.pass == Pass::kForward) ++held;
      if (action.pass == Pass::kBackward) --held;
      if (action.pass == Pass::kBackwardInput) ++half_freed;
      if (action.pass == Pass::kBackwardWeight) --held, --half_freed;
      peak = std::max(peak, static_cast<double>(held) -
                                freed_by_input_gradient * static_cast<double>(half_freed));
    }
    peaks.push_back(peak / chunks_of_device(schedule.placement, PipelineRankId(d)));
  }
  return peaks;
}

}  // namespace meshwright
