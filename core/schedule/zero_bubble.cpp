/// Schedules of Zero Bubble (Qi et al., arXiv:2401.10241): the backward is split, and weight
/// gradients fill the gaps. First the handcrafted ones; then zb-1p and zb-2p, found by grid search
/// over the options of the automatic scheduler under their caps.
#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "core/schedule/automatic.hpp"
#include "core/schedule/automatic_v.hpp"
#include "core/schedule/chunk_order_writer.hpp"
#include "core/schedule/generators.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {

namespace {

/// Device d runs k (p - 1 - d) forwards ahead and defers k d weight gradients; together, every
/// device holds the same number of micro-batches.
Schedule delayed_weight_gradients(std::string name, const ScheduleRequest& request, int k) {
  const int p = request.devices;
  const int m = request.microbatches;
  Schedule schedule = empty_schedule(std::move(name), looped_placement(p, 1), m);
  for (int d = 0; d < p; ++d) {
    const StageId stage(d);
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    order.reserve(3 * static_cast<std::size_t>(m));
    const int warm_up = std::min(m, k * (p - 1 - d));
    for (int f = 0; f < warm_up; ++f) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
    int w = 0;
    for (int b = 0; b < m; ++b) {
      const int f = warm_up + b;
      if (f < m) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
      order.push_back({stage, Pass::kBackwardInput, MicrobatchId(b)});
      if (b - w >= k * d) order.push_back({stage, Pass::kBackwardWeight, MicrobatchId(w++)});
    }
    for (; w < m; ++w) order.push_back({stage, Pass::kBackwardWeight, MicrobatchId(w)});
  }
  return schedule;
}

}  // namespace

Schedule generate_zb_h1(const ScheduleRequest& request) {
  return delayed_weight_gradients("zb-h1", request, 1);
}

Schedule generate_zb_h2(const ScheduleRequest& request) {
  return delayed_weight_gradients("zb-h2", request, 2);
}

/// ZB-V (section 6): two chunks in a V, so that the first and last stages share device 0. Defined
/// for m >= 2p - 1; with fewer micro-batches, the order for 2p - 1 without the missing ones.
Schedule generate_zb_v(const ScheduleRequest& request) {
  const int p = request.devices;
  const int m = request.microbatches;
  const int rounds = std::max(m, 2 * p - 1);
  Schedule schedule = empty_schedule("zb-v", wave_placement(p, 2), m);
  for (int d = 0; d < p; ++d) {
    auto& order = schedule.orders[static_cast<std::size_t>(d)];
    ChunkOrderWriter write({StageId(d), StageId(2 * p - 1 - d)}, order);
    for (int i = 0; i < 2 * (p - d) - 1; ++i) write.forward(0);
    for (int i = 0; i < d; ++i) {
      write.forward(1);
      write.forward(0);
    }
    for (int i = 0; i < p - d; ++i) {
      write.forward(1);
      write.input_and_weight(1);
    }
    while (write.forwards(1) < rounds) {
      if (write.forwards(0) < rounds) write.forward(0);
      write.input_and_weight(0);
      write.forward(1);
      write.input_and_weight(1);
    }
    for (int i = 0; i < d; ++i) {
      write.input(0);
      write.input(1);
    }
    for (int i = 0; i < p - d; ++i) {
      write.input(0);
      write.weight(0);
    }
    for (const std::size_t chunk : {1u, 0u})
      while (write.weights(chunk) < rounds) write.weight(chunk);
    std::erase_if(order, [&](const Action& a) { return a.microbatch.value >= m; });
  }
  return shortest_v(std::move(schedule), request, p);
}

namespace {

std::vector<AutomaticChoices> all_choices() {
  using Squeeze = AutomaticChoices::Squeeze;
  using HoldBack = AutomaticChoices::HoldBack;
  std::vector<AutomaticChoices> all;
  for (const bool ahead : {true, false})
    for (const bool crowd : {false, true})
      for (const HoldBack hold :
           {HoldBack::kNever, HoldBack::kWhenLate, HoldBack::kWhenVeryLate, HoldBack::kAlways})
        for (const Squeeze squeeze : {Squeeze::kNever, Squeeze::kWhenWaitedMost, Squeeze::kAlways})
          all.push_back({.crowd_first_backward = crowd,
                         .hold_back = hold,
                         .squeeze = squeeze,
                         .stay_ahead = ahead});
  return all;
}

bool fits_caps(const AutomaticTask& task, const Schedule& schedule) {
  const std::vector<double> peaks = peak_activations(schedule, task.freed_by_input_gradient);
  for (std::size_t d = 0; d < peaks.size(); ++d)
    if (peaks[d] > task.activation_caps[d] + kCapRounding) return false;
  return true;
}

Schedule schedule_of(const PassOrders& passes, int microbatches) {
  const auto p = static_cast<int>(passes.size());
  Schedule schedule = empty_schedule("", looped_placement(p, 1), microbatches);
  for (std::size_t d = 0; d < passes.size(); ++d) {
    auto& order = schedule.orders[d];
    order.reserve(passes[d].size());
    std::array<int, 4> next{};  // by pass
    for (const Pass pass : passes[d])
      order.push_back({StageId(static_cast<int>(d)), pass,
                       MicrobatchId(next[static_cast<std::size_t>(pass)]++)});
  }
  return schedule;
}

}  // namespace

Schedule best_automatic_schedule(const AutomaticTask& task) {
  std::optional<AutomaticOrders> best;
  const auto value = [](const auto& timed) { return std::tuple(timed.period, timed.makespan); };
  for (const AutomaticChoices& choices : all_choices())
    if (AutomaticOrders orders = schedule_automatically(task, choices);
        !best || value(orders) < value(*best))
      best = std::move(orders);
  ScheduleRequest request;
  request.devices = static_cast<int>(task.activation_caps.size());
  request.microbatches = task.microbatches;
  std::optional<Schedule> handcrafted;
  auto best_value = value(*best);
  for (const auto generate : {generate_zb_h1, generate_zb_h2}) {
    Schedule schedule = generate(request);
    const auto other = value(time_schedule(schedule, task.times));
    if (other >= best_value || !fits_caps(task, schedule)) continue;
    best_value = other;
    handcrafted = std::move(schedule);
  }
  return handcrafted ? *std::move(handcrafted) : schedule_of(best->passes, task.microbatches);
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
