#include "core/schedule/pass_order.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kPassKinds = 4;  ///< F, B, I, W
constexpr std::size_t kMostStages = 65536 / kPassKinds;
constexpr std::int32_t kNotYet = -1;

class OrderedPasses {
 public:
  explicit OrderedPasses(const Schedule& schedule)
      : schedule_(schedule),
        stages_(schedule.placement.device_of_stage.size()),
        activation_(stages_ * static_cast<std::size_t>(schedule.microbatch_count), kNotYet),
        gradient_(activation_.size(), kNotYet),
        next_(schedule.orders.size()),
        place_(schedule.placement.routes.size() * stages_) {
    order_.devices = schedule.placement.devices;
    order_.stages = static_cast<int>(stages_);
    std::size_t passes = 0;
    for (const std::vector<Action>& actions : schedule.orders) passes += actions.size();
    order_.steps.reserve(passes);
    const auto& routes = schedule.placement.routes;
    for (std::size_t r = 0; r < routes.size(); ++r)
      for (std::size_t i = 0; i < routes[r].size(); ++i)
        place_[r * stages_ + routes[r][i].index()] = i;
    order_.sender.assign(stages_ * kPassKinds, -1);
    for (const std::vector<StageId>& route : routes)
      for (std::size_t i = 0; i + 1 < route.size(); ++i) list_messages(route[i], route[i + 1]);
    for (int mb = 0; mb < schedule.microbatch_count; ++mb)
      activation_[cell(route_of(MicrobatchId(mb)).front(), MicrobatchId(mb))] = 0;
  }

  PassOrder run() {
    for (std::size_t device = 0; device < next_.size(); ++device) ready_.push_back(device);
    while (!ready_.empty()) {
      const std::size_t device = ready_.back();
      ready_.pop_back();
      while (next_[device] < schedule_.orders[device].size() &&
             try_pass(device, schedule_.orders[device][next_[device]]))
        ++next_[device];
    }
    MW_CHECK(is_complete());
    return std::move(order_);
  }

 private:
  std::size_t cell(StageId stage, MicrobatchId mb) const {
    return mb.index() * stages_ + stage.index();
  }
  std::size_t route_index(MicrobatchId mb) const {
    return static_cast<std::size_t>(schedule_.route_of_microbatch[mb.index()]);
  }
  const std::vector<StageId>& route_of(MicrobatchId mb) const {
    return schedule_.placement.routes[route_index(mb)];
  }
  bool is_complete() const {
    for (std::size_t device = 0; device < next_.size(); ++device)
      if (next_[device] != schedule_.orders[device].size()) return false;
    return true;
  }

  void list_messages(StageId from, StageId to) {
    const std::vector<PipelineRankId>& devices = schedule_.placement.device_of_stage;
    if (devices[from.index()] == devices[to.index()]) return;
    const auto sender_to = [&](StageId stage, Pass pass) -> std::int32_t& {
      return order_.sender[kind_of(stage, pass)];
    };
    sender_to(to, Pass::kForward) = from.value;
    sender_to(from, Pass::kBackward) = sender_to(from, Pass::kBackwardInput) = to.value;
  }
  static std::size_t kind_of(StageId stage, Pass pass) {
    return stage.index() * kPassKinds + static_cast<std::size_t>(pass);
  }

  bool try_pass(std::size_t device, const Action& action) {
    const std::size_t at = cell(action.stage, action.microbatch);
    const bool is_weight = action.pass == Pass::kBackwardWeight;  // its I ran before, here
    const std::int32_t input = is_weight                       ? 0
                               : action.pass == Pass::kForward ? activation_[at]
                                                               : gradient_[at];
    if (input == kNotYet) return false;
    order_.steps.push_back(
        {.input = input,
         .device = static_cast<std::uint16_t>(device),
         .duration = static_cast<std::uint16_t>(kind_of(action.stage, action.pass))});
    if (!is_weight) hand_on(action, static_cast<std::int32_t>(order_.steps.size()));
    return true;
  }

  void hand_on(const Action& action, std::int32_t step) {
    const std::vector<StageId>& route = route_of(action.microbatch);
    const std::size_t place =
        place_[route_index(action.microbatch) * stages_ + action.stage.index()];
    if (action.pass != Pass::kForward) {
      if (place > 0) arrive(route[place - 1], action.microbatch, gradient_, step);
    } else if (place + 1 == route.size()) {  // the loss is part of the last stage
      arrive(action.stage, action.microbatch, gradient_, step);
    } else {
      arrive(route[place + 1], action.microbatch, activation_, step);
    }
  }
  void arrive(StageId stage, MicrobatchId mb, std::vector<std::int32_t>& inputs,
              std::int32_t step) {
    inputs[cell(stage, mb)] = step;
    ready_.push_back(schedule_.placement.device_of_stage[stage.index()].index());
  }

  const Schedule& schedule_;
  std::size_t stages_;
  PassOrder order_;
  std::vector<std::int32_t> activation_, gradient_;  ///< by cell: 1 + the step that makes the input
  std::vector<std::size_t> next_;                    ///< by device: in its order
  std::vector<std::size_t> ready_;                   ///< devices that may go on
  std::vector<std::size_t> place_;                   ///< by route x stage: on the route
};

}  // namespace

std::optional<PassOrder> pass_order_of(const Schedule& schedule) {
  const auto is_plain = [](const std::vector<Action>& actions) {
    return std::ranges::none_of(actions, &Action::overlaps_next);
  };
  if (schedule.output_barriers > 0 || schedule.placement.device_of_stage.size() > kMostStages ||
      !std::ranges::all_of(schedule.orders, is_plain))
    return std::nullopt;
  return OrderedPasses(schedule).run();
}

Ticks makespan_of(const PassOrder& order, const StageTimes& times, std::vector<Ticks>& ends) {
  MW_CHECK(times.forward.size() == static_cast<std::size_t>(order.stages));
  std::vector<Ticks> durations;
  durations.reserve(times.forward.size() * kPassKinds);
  for (std::size_t s = 0; s < times.forward.size(); ++s)
    for (const Ticks duration :
         {times.forward[s], times.backward_input[s] + times.backward_weight[s],
          times.backward_input[s], times.backward_weight[s]})
      durations.push_back(duration);
  std::vector<Ticks> delays(order.sender.size());
  for (std::size_t kind = 0; kind < delays.size(); ++kind)
    if (order.sender[kind] >= 0)
      delays[kind] =
          latency_between(times, StageId(order.sender[kind]), StageId(kind / kPassKinds));
  std::vector<Ticks> free(static_cast<std::size_t>(order.devices));
  ends.resize(order.steps.size() + 1);
  ends.front() = Ticks();
  for (std::size_t i = 0; i < order.steps.size(); ++i) {
    const PassOrder::Step& step = order.steps[i];
    const Ticks arrival = ends[static_cast<std::size_t>(step.input)] + delays[step.duration];
    const Ticks start = std::max(free[step.device], arrival);
    free[step.device] = ends[i + 1] = start + durations[step.duration];
  }
  return *std::ranges::max_element(free);
}

}  // namespace meshwright
