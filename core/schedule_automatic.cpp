#include "core/schedule_automatic.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/check.hpp"
#include "core/schedule_generators.hpp"
#include "core/schedule_timing.hpp"

namespace meshwright {
namespace {

constexpr double kRounding = 1e-9;  ///< of caps and fractions, in micro-batches

/// A device that is being scheduled: what it did so far and when it is free again.
struct DeviceState {
  int forwards = 0;
  int inputs = 0;
  int weights = 0;
  Ticks free;
  Ticks waited;  ///< since its first forward
};

class AutomaticScheduler {
 public:
  AutomaticScheduler(const AutomaticTask& task, const AutomaticChoices& choices);
  Schedule run();

 private:
  int device_count() const { return static_cast<int>(devices_.size()); }
  DeviceState& device(int d) { return devices_[static_cast<std::size_t>(d)]; }
  const DeviceState& device(int d) const { return devices_[static_cast<std::size_t>(d)]; }
  std::size_t cell(int d, int mb) const {
    return static_cast<std::size_t>(d) * static_cast<std::size_t>(task_.microbatches) +
           static_cast<std::size_t>(mb);
  }

  Ticks duration(int d, Pass pass) const;
  Ticks forward_arrival(int d, int mb) const;
  Ticks input_arrival(int d, int mb) const;
  bool has_room(int d) const;

  void put(int d, Pass pass, int mb, Ticks arrival);
  void put_weight(int d);
  void warm_up();
  void fill_gap(int d, Ticks arrival);
  void place_input(int d);
  void place_forward(int d);
  bool may_hold_back(int d) const;

  const AutomaticTask& task_;
  AutomaticChoices choices_;
  std::vector<DeviceState> devices_;
  std::vector<Ticks> forward_end_;  ///< by device x micro-batch
  std::vector<Ticks> input_end_;
  Schedule schedule_;
};

AutomaticScheduler::AutomaticScheduler(const AutomaticTask& task, const AutomaticChoices& choices)
    : task_(task), choices_(choices), devices_(task.times.forward.size()) {
  MW_CHECK(task.activation_caps.size() == devices_.size());
  const std::size_t cells = devices_.size() * static_cast<std::size_t>(task.microbatches);
  forward_end_.resize(cells);
  input_end_.resize(cells);
  schedule_ = empty_schedule("", looped_placement(device_count(), 1), task.microbatches);
  for (auto& order : schedule_.orders)
    order.reserve(3 * static_cast<std::size_t>(task.microbatches));
}

Ticks AutomaticScheduler::duration(int d, Pass pass) const {
  const auto s = static_cast<std::size_t>(d);
  switch (pass) {
    case Pass::kForward:
      return task_.times.forward[s];
    case Pass::kBackward:
      return task_.times.backward_input[s] + task_.times.backward_weight[s];
    case Pass::kBackwardInput:
      return task_.times.backward_input[s];
    case Pass::kBackwardWeight:
      return task_.times.backward_weight[s];
  }
  MW_CHECK(false);
}

Ticks AutomaticScheduler::forward_arrival(int d, int mb) const {
  return d == 0 ? Ticks(0) : forward_end_[cell(d - 1, mb)] + task_.times.latency;
}

Ticks AutomaticScheduler::input_arrival(int d, int mb) const {
  return d + 1 == device_count() ? forward_end_[cell(d, mb)]
                                 : input_end_[cell(d + 1, mb)] + task_.times.latency;
}

bool AutomaticScheduler::has_room(int d) const {
  const DeviceState& state = device(d);
  const double held = state.forwards - state.weights -
                      task_.freed_by_input_gradient * (state.inputs - state.weights);
  return held + 1 <= task_.activation_caps[static_cast<std::size_t>(d)] + kRounding;
}

void AutomaticScheduler::put(int d, Pass pass, int mb, Ticks arrival) {
  DeviceState& state = device(d);
  const Ticks start = std::max(state.free, arrival);
  if (state.forwards > 0) state.waited += start - state.free;
  state.free = start + duration(d, pass);
  schedule_.orders[static_cast<std::size_t>(d)].push_back({StageId(d), pass, MicrobatchId(mb)});
  if (pass == Pass::kForward) {
    forward_end_[cell(d, mb)] = state.free;
    ++state.forwards;
  } else if (pass == Pass::kBackwardInput) {
    input_end_[cell(d, mb)] = state.free;
    ++state.inputs;
  } else {
    ++state.weights;
  }
}

void AutomaticScheduler::put_weight(int d) {
  put(d, Pass::kBackwardWeight, device(d).weights, Ticks(0));
}

/// As many forwards as fit before the first backward comes back, within the cap; every device runs
/// at least one more than its successor.
void AutomaticScheduler::warm_up() {
  const int p = device_count();
  std::vector<int> counts(static_cast<std::size_t>(p), 1);
  std::vector<int> limits;  // by the cap, and one less than the device before
  for (int d = 0; d < p; ++d) {
    const auto cap = static_cast<int>(
        std::min<double>(task_.microbatches, task_.activation_caps[static_cast<std::size_t>(d)]));
    limits.push_back(std::max(1, d == 0                 ? cap
                                 : !choices_.stay_ahead ? cap
                                                        : std::min(cap, limits.back() - 1)));
  }
  for (int d = 0; d < p; ++d) put(d, Pass::kForward, 0, forward_arrival(d, 0));
  Ticks first_input = device(p - 1).free;  // when the first backward of device d may start
  for (int d = p - 1; d >= 0; --d) {
    auto& count = counts[static_cast<std::size_t>(d)];
    Ticks busy_until = device(d).free;
    const auto fits = [&] { return count < limits[static_cast<std::size_t>(d)]; };
    const int needed = d + 1 < p ? counts[static_cast<std::size_t>(d + 1)] + 1 : 1;
    while (fits() && (count < needed || busy_until + duration(d, Pass::kForward) <= first_input ||
                      (choices_.crowd_first_backward && busy_until < first_input))) {
      busy_until += duration(d, Pass::kForward);
      ++count;
    }
    first_input =
        std::max(first_input, busy_until) + duration(d, Pass::kBackwardInput) + task_.times.latency;
  }
  for (int mb = 1; mb < task_.microbatches; ++mb)
    for (int d = 0; d < p && mb < counts[static_cast<std::size_t>(d)]; ++d)
      put(d, Pass::kForward, mb, forward_arrival(d, mb));
}

/// Weight gradients until `arrival`; one more when the gap left would make this device the one that
/// has waited longest.
void AutomaticScheduler::fill_gap(int d, Ticks arrival) {
  const DeviceState& state = device(d);
  while (state.weights < state.inputs && state.free + duration(d, Pass::kBackwardWeight) <= arrival)
    put_weight(d);
  using Squeeze = AutomaticChoices::Squeeze;
  if (choices_.squeeze == Squeeze::kNever || state.weights == state.inputs || state.free >= arrival)
    return;
  const Ticks longest =
      std::max_element(devices_.begin(), devices_.end(), [](const auto& a, const auto& b) {
        return a.waited < b.waited;
      })->waited;
  if (choices_.squeeze == Squeeze::kAlways || state.waited + (arrival - state.free) > longest)
    put_weight(d);
}

void AutomaticScheduler::place_input(int d) {
  const int mb = device(d).inputs;
  if (mb == device(d).forwards) return;
  if (d + 1 < device_count() && device(d + 1).inputs == mb) return;
  const Ticks arrival = input_arrival(d, mb);
  fill_gap(d, arrival);
  put(d, Pass::kBackwardInput, mb, arrival);
}

/// The successor has forwards in store, and its store lasts until this device's next one.
bool AutomaticScheduler::may_hold_back(int d) const {
  return choices_.hold_back_forwards && d + 1 < device_count() &&
         device(d).forwards - device(d + 1).forwards > 1;
}

void AutomaticScheduler::place_forward(int d) {
  const int mb = device(d).forwards;
  if (mb == task_.microbatches || may_hold_back(d)) return;
  const int lead = choices_.stay_ahead ? 2 : 1;
  if (d > 0 && device(d - 1).forwards < std::min(task_.microbatches, mb + lead)) return;
  while (!has_room(d) && device(d).weights < device(d).inputs) put_weight(d);
  if (!has_room(d)) return;
  const Ticks arrival = forward_arrival(d, mb);
  fill_gap(d, arrival);
  put(d, Pass::kForward, mb, arrival);
}

Schedule AutomaticScheduler::run() {
  const int p = device_count();
  warm_up();
  while (device(0).inputs < task_.microbatches) {
    for (int d = p - 1; d >= 0; --d) place_input(d);
    for (int d = 0; d < p; ++d) place_forward(d);
  }
  for (int d = 0; d < p; ++d)
    while (device(d).weights < task_.microbatches) put_weight(d);
  return std::move(schedule_);
}

}  // namespace

Schedule schedule_automatically(const AutomaticTask& task, const AutomaticChoices& choices) {
  return AutomaticScheduler(task, choices).run();
}

namespace {

std::vector<AutomaticChoices> all_choices() {
  using Squeeze = AutomaticChoices::Squeeze;
  std::vector<AutomaticChoices> all;
  for (const bool ahead : {true, false})
    for (const bool crowd : {false, true})
      for (const bool hold : {false, true})
        for (const Squeeze squeeze : {Squeeze::kNever, Squeeze::kWhenWaitedMost, Squeeze::kAlways})
          all.push_back({.crowd_first_backward = crowd,
                         .hold_back_forwards = hold,
                         .squeeze = squeeze,
                         .stay_ahead = ahead});
  return all;
}

bool fits_caps(const AutomaticTask& task, const Schedule& schedule) {
  const std::vector<double> peaks = peak_activations(schedule, task.freed_by_input_gradient);
  for (std::size_t d = 0; d < peaks.size(); ++d)
    if (peaks[d] > task.activation_caps[d] + kRounding) return false;
  return true;
}

}  // namespace

Schedule best_automatic_schedule(const AutomaticTask& task) {
  std::vector<Schedule> candidates;
  for (const AutomaticChoices& choices : all_choices())
    candidates.push_back(schedule_automatically(task, choices));
  ScheduleRequest request;
  request.devices = static_cast<int>(task.activation_caps.size());
  request.microbatches = task.microbatches;
  for (const auto generate : {generate_zb_h1, generate_zb_h2})
    if (Schedule handcrafted = generate(request); fits_caps(task, handcrafted))
      candidates.push_back(std::move(handcrafted));
  const auto cost = [&](const Schedule& schedule) {
    const ScheduleTiming timing = time_schedule(schedule, task.times);
    return std::tuple(timing.period, timing.makespan);
  };
  std::size_t best = 0;
  auto best_cost = cost(candidates[0]);
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (const auto other = cost(candidates[i]); other < best_cost) {
      best = i;
      best_cost = other;
    }
  return std::move(candidates[best]);
}

namespace {

Schedule automatic_with_cap(std::string name, const ScheduleRequest& request, int own_cap) {
  const Ticks unit(1);
  const AutomaticTask task{
      .microbatches = request.microbatches,
      .times = request.times.value_or(uniform_times(request.devices, unit, unit, unit)),
      .activation_caps = std::vector<double>(static_cast<std::size_t>(request.devices),
                                             request.activation_cap.value_or(own_cap)),
      .freed_by_input_gradient = request.freed_by_input_gradient};
  Schedule schedule = best_automatic_schedule(task);
  schedule.name = std::move(name);
  return schedule;
}

}  // namespace

Schedule generate_zb_1p(const ScheduleRequest& request) {
  return automatic_with_cap("zb-1p", request, request.devices);
}

Schedule generate_zb_2p(const ScheduleRequest& request) {
  return automatic_with_cap("zb-2p", request, 2 * request.devices);
}

}  // namespace meshwright
