#include "core/schedule/automatic.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// State of a device during scheduling: its passes so far and when it is free again.
struct DeviceState {
  int forwards = 0;
  int inputs = 0;
  int weights = 0;
  Ticks first_start;
  Ticks free;
  Ticks waited;          ///< since its first forward
  Ticks down_link_free;  ///< link to the next device
  Ticks up_link_free;    ///< link to the previous device
};

class AutomaticScheduler {
 public:
  AutomaticScheduler(const AutomaticTask& task, const AutomaticChoices& choices);
  AutomaticOrders run();

 private:
  int device_count() const { return static_cast<int>(devices_.size()); }
  DeviceState& device(int d) { return devices_[static_cast<std::size_t>(d)]; }
  const DeviceState& device(int d) const { return devices_[static_cast<std::size_t>(d)]; }
  std::size_t cell(int d, int mb) const {
    return static_cast<std::size_t>(d) * static_cast<std::size_t>(task_.microbatches) +
           static_cast<std::size_t>(mb);
  }

  Ticks duration(int d, Pass pass) const;
  Ticks longest_wait() const;
  int weights_before_forward(int d) const;
  bool has_room(int d) const { return weights_before_forward(d) == 0; }

  void put(int d, Pass pass);
  Ticks send(Ticks end, Ticks& link_free) const;
  std::vector<int> forwards_before_first_backward() const;
  void warm_up();
  void fill_gap(int d, Ticks arrival);
  bool place_input(int d);
  bool place_forward(int d, int lead);
  bool holds_back(int d) const;
  void plan_round();
  AutomaticOrders finish();

  const AutomaticTask& task_;
  AutomaticChoices choices_;
  std::vector<DeviceState> devices_;
  std::vector<Ticks> forward_arrival_;  ///< by device x micro-batch
  std::vector<Ticks> input_arrival_;
  std::vector<char> held_back_;  ///< by device, for this round
  AutomaticOrders orders_;
};

AutomaticScheduler::AutomaticScheduler(const AutomaticTask& task, const AutomaticChoices& choices)
    : task_(task), choices_(choices), devices_(task.times.forward.size()) {
  MW_CHECK(task.activation_caps.size() == devices_.size());
  const std::size_t cells = devices_.size() * static_cast<std::size_t>(task.microbatches);
  forward_arrival_.resize(cells);
  input_arrival_.resize(cells);
  held_back_.resize(devices_.size());
  orders_.passes.resize(devices_.size());
  for (auto& order : orders_.passes) order.reserve(3 * static_cast<std::size_t>(task.microbatches));
}

Ticks AutomaticScheduler::duration(int d, Pass pass) const {
  const auto s = static_cast<std::size_t>(d);
  if (pass == Pass::kForward) return task_.times.forward[s];
  if (pass == Pass::kBackwardInput) return task_.times.backward_input[s];
  MW_CHECK(pass == Pass::kBackwardWeight);
  return task_.times.backward_weight[s];
}

Ticks AutomaticScheduler::longest_wait() const {
  Ticks longest;
  for (const DeviceState& state : devices_) longest = std::max(longest, state.waited);
  return longest;
}

/// Number of weight gradients that must run before another forward fits the cap; more than are
/// available if it cannot fit.
int AutomaticScheduler::weights_before_forward(int d) const {
  const DeviceState& state = device(d);
  const double freed = task_.freed_by_input_gradient;
  const double cap = task_.activation_caps[static_cast<std::size_t>(d)];
  int more = 0;
  const auto fits = [&] {
    const int weights = state.weights + more;
    return state.forwards - weights - freed * (state.inputs - weights) + 1 <= cap + kCapRounding;
  };
  while (state.weights + more <= state.inputs && !fits()) ++more;
  return more;
}

Ticks AutomaticScheduler::send(Ticks end, Ticks& link_free) const {
  const Ticks start = std::max(end, link_free);
  link_free = start + task_.times.link_occupancy;
  return start + task_.times.latency;
}

void AutomaticScheduler::put(int d, Pass pass) {
  DeviceState& state = device(d);
  Ticks arrival;
  if (pass == Pass::kForward) arrival = forward_arrival_[cell(d, state.forwards)];
  if (pass == Pass::kBackwardInput) arrival = input_arrival_[cell(d, state.inputs)];
  const Ticks start = std::max(state.free, arrival);
  if (state.forwards > 0)
    state.waited += start - state.free;
  else
    state.first_start = start;
  state.free = start + duration(d, pass);
  orders_.passes[static_cast<std::size_t>(d)].push_back(pass);
  if (pass == Pass::kForward) {
    if (d + 1 < device_count())
      forward_arrival_[cell(d + 1, state.forwards)] = send(state.free, state.down_link_free);
    else
      input_arrival_[cell(d, state.forwards)] = state.free;
    ++state.forwards;
  } else if (pass == Pass::kBackwardInput) {
    if (d > 0) input_arrival_[cell(d - 1, state.inputs)] = send(state.free, state.up_link_free);
    ++state.inputs;
  } else {
    ++state.weights;
  }
}

/// Number of forwards of every device before its first input gradient: as many as fit before that
/// gradient can arrive, within the cap; then trimmed so that every device stays ahead of its
/// successor.
std::vector<int> AutomaticScheduler::forwards_before_first_backward() const {
  const int p = device_count();
  std::vector<int> counts(static_cast<std::size_t>(p), 1);
  Ticks first_input = device(p - 1).free;  // when the first input gradient of device d may start
  for (int d = p - 1; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    const int cap =
        static_cast<int>(std::min<double>(task_.microbatches, task_.activation_caps[i]));
    const int needed = d + 1 < p ? counts[i + 1] + 1 : 1;
    Ticks busy_until = device(d).free;
    while (counts[i] < cap &&
           (counts[i] < needed || busy_until + duration(d, Pass::kForward) <= first_input ||
            (choices_.crowd_first_backward && busy_until < first_input))) {
      busy_until += duration(d, Pass::kForward);
      ++counts[i];
    }
    first_input =
        std::max(first_input, busy_until) + duration(d, Pass::kBackwardInput) + task_.times.latency;
  }
  for (std::size_t i = 1; choices_.stay_ahead && i < counts.size(); ++i)
    counts[i] = std::max(1, std::min(counts[i], counts[i - 1] - 1));
  return counts;
}

void AutomaticScheduler::warm_up() {
  const int p = device_count();
  for (int d = 0; d < p; ++d) put(d, Pass::kForward);
  const std::vector<int> counts = forwards_before_first_backward();
  for (int mb = 1; mb < task_.microbatches; ++mb)
    for (int d = 0; d < p && mb < counts[static_cast<std::size_t>(d)]; ++d) put(d, Pass::kForward);
  for (int d = p - 1; d >= 0; --d) put(d, Pass::kBackwardInput);
}

/// Runs weight gradients until `arrival`; optionally one more if the remaining gap is too short.
void AutomaticScheduler::fill_gap(int d, Ticks arrival) {
  const DeviceState& state = device(d);
  while (state.weights < state.inputs && state.free + duration(d, Pass::kBackwardWeight) <= arrival)
    put(d, Pass::kBackwardWeight);
  using Squeeze = AutomaticChoices::Squeeze;
  if (choices_.squeeze == Squeeze::kNever || state.weights == state.inputs || state.free >= arrival)
    return;
  const bool would_wait_longest = state.waited + (arrival - state.free) > longest_wait();
  if (choices_.squeeze == Squeeze::kAlways || would_wait_longest) put(d, Pass::kBackwardWeight);
}

bool AutomaticScheduler::place_input(int d) {
  const int mb = device(d).inputs;
  if (mb == device(d).forwards) return false;
  if (d + 1 < device_count() && device(d + 1).inputs == mb) return false;
  // No device waits for the last input gradients of the first device: weight gradients go first.
  if (d == 0 && device(d).forwards == task_.microbatches)
    while (device(d).weights < device(d).inputs) put(d, Pass::kBackwardWeight);
  fill_gap(d, input_arrival_[cell(d, mb)]);
  put(d, Pass::kBackwardInput);
  return true;
}

/// Whether this device should skip a forward; see AutomaticChoices::HoldBack.
bool AutomaticScheduler::holds_back(int d) const {
  using HoldBack = AutomaticChoices::HoldBack;
  const DeviceState& state = device(d);
  if (choices_.hold_back == HoldBack::kNever || d + 1 == device_count() ||
      state.forwards == task_.microbatches)
    return false;
  const DeviceState& next = device(d + 1);
  if (state.forwards - next.forwards < 2) return false;
  if (choices_.hold_back == HoldBack::kAlways) return true;
  // Arrival of the next input gradient if the successor runs one forward before it.
  const Ticks gradient = next.free + duration(d + 1, Pass::kForward) +
                         duration(d + 1, Pass::kBackwardInput) + task_.times.latency;
  if (state.free >= gradient) return true;
  const int weights = std::min(weights_before_forward(d), state.inputs - state.weights);
  const Ticks forward = duration(d, Pass::kForward);
  const Ticks end = state.free + weights * duration(d, Pass::kBackwardWeight) + forward;
  const Ticks tolerated = choices_.hold_back == HoldBack::kWhenVeryLate ? forward / 2 : Ticks(0);
  if (end <= gradient + tolerated) return false;
  return state.waited + (gradient - state.free) <= longest_wait();
}

/// If its successor holds back, a device holds back as well.
void AutomaticScheduler::plan_round() {
  bool successor = false;
  for (int d = device_count() - 1; d >= 0; --d) {
    const bool follows = successor && choices_.hold_back != AutomaticChoices::HoldBack::kAlways;
    successor = follows || holds_back(d);
    held_back_[static_cast<std::size_t>(d)] = successor ? 1 : 0;
  }
}

bool AutomaticScheduler::place_forward(int d, int lead) {
  const int mb = device(d).forwards;
  if (mb == task_.microbatches || held_back_[static_cast<std::size_t>(d)]) return false;
  if (d > 0 && device(d - 1).forwards < std::min(task_.microbatches, mb + lead)) return false;
  while (!has_room(d) && device(d).weights < device(d).inputs) put(d, Pass::kBackwardWeight);
  if (!has_room(d)) return false;
  fill_gap(d, forward_arrival_[cell(d, mb)]);
  put(d, Pass::kForward);
  return true;
}

/// Runs rounds until all input gradients are scheduled. After a round without progress (the cap
/// leaves no room to stay ahead), every device runs whatever it can in the next round.
AutomaticOrders AutomaticScheduler::run() {
  const int p = device_count();
  warm_up();
  int lead = choices_.stay_ahead ? 2 : 1;
  while (device(0).inputs < task_.microbatches) {
    bool moved = false;
    plan_round();
    for (int d = 0; d < p; ++d) moved |= place_forward(d, lead);
    for (int d = p - 1; d >= 0; --d) moved |= place_input(d);
    MW_CHECK(moved || lead > 1 || choices_.hold_back != AutomaticChoices::HoldBack::kNever);
    if (!moved) {
      lead = 1;
      choices_.hold_back = AutomaticChoices::HoldBack::kNever;
    }
  }
  for (int d = 0; d < p; ++d)
    while (device(d).weights < task_.microbatches) put(d, Pass::kBackwardWeight);
  return finish();
}

AutomaticOrders AutomaticScheduler::finish() {
  for (const DeviceState& state : devices_) {
    orders_.period = std::max(orders_.period, state.free - state.first_start);
    orders_.makespan = std::max(orders_.makespan, state.free - devices_.front().first_start);
  }
  return std::move(orders_);
}

}  // namespace

AutomaticOrders schedule_automatically(const AutomaticTask& task, const AutomaticChoices& choices) {
  return AutomaticScheduler(task, choices).run();
}

}  // namespace meshwright
