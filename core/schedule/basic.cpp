/// Schedules with one stage per device and unsplit backwards: naive, GPipe, 1F1B and variants.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {

Schedule empty_schedule(std::string name, Placement placement, int microbatches) {
  const auto devices = static_cast<std::size_t>(placement.devices);
  return {.name = std::move(name),
          .microbatch_count = microbatches,
          .placement = std::move(placement),
          .route_of_microbatch = std::vector<int>(static_cast<std::size_t>(microbatches), 0),
          .orders = std::vector<std::vector<Action>>(devices),
          .slices_per_microbatch = 1};
}

std::vector<Action> one_forward_one_backward(StageId stage, int microbatches, int warm_up) {
  MW_CHECK(warm_up >= 0 && warm_up <= microbatches);
  std::vector<Action> order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int f = 0; f < warm_up; ++f) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
  for (int b = 0; b < microbatches; ++b) {
    const int f = warm_up + b;
    if (f < microbatches) order.push_back({stage, Pass::kForward, MicrobatchId(f)});
    order.push_back({stage, Pass::kBackward, MicrobatchId(b)});
  }
  return order;
}

namespace {

/// Device d runs warm_up(d) forwards before it alternates.
template <class WarmUp>
Schedule alternating_schedule(std::string name, const ScheduleRequest& request,
                              const WarmUp& warm_up) {
  Schedule schedule =
      empty_schedule(std::move(name), looped_placement(request.devices, 1), request.microbatches);
  for (int d = 0; d < request.devices; ++d)
    schedule.orders[static_cast<std::size_t>(d)] =
        one_forward_one_backward(StageId(d), request.microbatches, warm_up(d));
  return schedule;
}

}  // namespace

/// No pipelining at all: a micro-batch passes every stage forward and backward before the next one
/// enters.
Schedule generate_naive(const ScheduleRequest& request) {
  return alternating_schedule("naive", request, [](int) { return 0; });
}

/// All forwards, then all backwards (Huang et al., arXiv:1811.06965).
Schedule generate_gpipe(const ScheduleRequest& request) {
  return alternating_schedule("gpipe", request, [&](int) { return request.microbatches; });
}

/// 1F1B with a flush (Narayanan et al., arXiv:2104.04473, 2.2.1; PipeDream-Flush; DAPPLE): device d
/// runs min(m, p - 1 - d) forwards ahead, so that device d + 1 is never starved.
Schedule generate_1f1b(const ScheduleRequest& request) {
  return alternating_schedule("1f1b", request, [&](int d) {
    return std::min(request.microbatches, request.devices - 1 - d);
  });
}

/// PipeDream (Narayanan et al., SOSP 2019, arXiv:1806.03377): the order of 1F1B without a flush.
/// Every micro-batch updates the weights immediately; a device stashes the weight version used by
/// the forward of each micro-batch in flight.
Schedule generate_pipedream(const ScheduleRequest& request) {
  Schedule schedule = generate_1f1b(request);
  schedule.name = "pipedream";
  return schedule;
}

/// PipeDream-2BW (Narayanan et al., arXiv:2006.09503): gradients of m >= p micro-batches make one
/// update, so that two versions are enough: W(t+1) = W(t) - n g(W(t-1)).
Schedule generate_pipedream_2bw(const ScheduleRequest& request) {
  Schedule schedule = generate_1f1b(request);
  schedule.name = "pipedream-2bw";
  return schedule;
}

/// Placeholder until the planner has synthesized orders.
Schedule generate_synthesized(const ScheduleRequest& request) {
  ScheduleRequest plain = request;
  plain.times.reset();
  plain.activation_cap.reset();
  plain.freed_by_input_gradient = 0;
  const ScheduleRule* rule = find_schedule_rule(request.chunks == 1 ? "zb-1p" : "hanayo");
  Schedule schedule = rule->generate(plain);
  schedule.name = "auto";
  return schedule;
}

}  // namespace meshwright
