#include "simulator/variation/what_if.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Attributes all of it to one kernel kind: the breakdown of a replaced time is unknown.
void set_duration(WorkPrice& price, Ticks duration) {
  price.duration = duration;
  price.since_launch = duration;
  price.host = Ticks();
  price.host_since_start.reset();
  price.stalls = Ticks();
  price.latency = Ticks();
  price.kernels.fill(Ticks());
  price.kernels[static_cast<std::size_t>(KernelKind::kGemm)] = duration;
  price.recompute = Ticks();
  price.communication.fill(Ticks());
}

/// The price of an unsplit backward does not separate the two gradients, so it is replaced only if
/// both times are set.
std::optional<Ticks> time_of(TaskKind kind, const WhatIf& what_if) {
  switch (kind) {
    case TaskKind::kForward:
      return what_if.forward;
    case TaskKind::kBackwardInput:
      return what_if.backward_input;
    case TaskKind::kBackwardWeight:
      return what_if.backward_weight;
    case TaskKind::kBackward:
      if (what_if.backward_input && what_if.backward_weight)
        return *what_if.backward_input + *what_if.backward_weight;
      return std::nullopt;
    case TaskKind::kOptimizer:
      return what_if.optimizer;
    case TaskKind::kCollective:
    case TaskKind::kSend:
    case TaskKind::kReceive:
      break;
  }
  return std::nullopt;
}

/// Parts are rounded one by one; the duration is their sum, as check_prices requires.
WorkPrice slowed(WorkPrice price, double factor) {
  const auto scale = [factor](Ticks& part) {
    part = Ticks(std::llround(static_cast<double>(part.value) * factor));
    return part;
  };
  const Ticks before = price.duration;
  price.duration = scale(price.recompute);
  for (Ticks& part : price.kernels) price.duration += scale(part);
  for (Ticks& part : price.communication) price.duration += scale(part);
  price.since_launch += price.duration - before;
  if (price.host_since_start) *price.host_since_start += price.duration - before;
  return price;
}

void slow_ranks(const std::vector<double>& slowness, TaskGraph& graph,
                std::vector<WorkPrice>& prices) {
  const std::size_t works = graph.works.size();
  constexpr std::int32_t kNotYet = -1;
  // By pipeline rank and work: the slowed copy.
  std::vector<std::vector<std::int32_t>> copies(slowness.size());
  for (Task& task : graph.tasks) {
    const RankInfo& rank = graph.ranks[static_cast<std::size_t>(task.rank)];
    const auto position = static_cast<std::size_t>(rank.coordinate.pipeline);
    MW_CHECK(position < slowness.size());
    if (slowness[position] == 1 || !is_compute(task.kind)) continue;
    std::vector<std::int32_t>& copy_of = copies[position];
    if (copy_of.empty()) copy_of.assign(works, kNotYet);
    std::int32_t& copy = copy_of[task.work.index()];
    if (copy == kNotYet) {
      copy = static_cast<std::int32_t>(graph.works.size());
      graph.works.push_back(graph.works[task.work.index()]);
      prices.push_back(slowed(prices[task.work.index()], slowness[position]));
    }
    task.work = WorkId(copy);
  }
}

/// Shortest price of each kind of pass, by stage.
struct ShortestPasses {
  std::vector<std::optional<Ticks>> forward, backward, input, weight;
  explicit ShortestPasses(std::size_t stages)
      : forward(stages), backward(stages), input(stages), weight(stages) {}

  std::vector<std::optional<Ticks>>* list_of(TaskKind kind) {
    switch (kind) {
      case TaskKind::kForward:
        return &forward;
      case TaskKind::kBackward:
        return &backward;
      case TaskKind::kBackwardInput:
        return &input;
      case TaskKind::kBackwardWeight:
        return &weight;
      default:
        return nullptr;
    }
  }
  void note(TaskKind kind, std::size_t stage, Ticks price) {
    if (auto* list = list_of(kind))
      (*list)[stage] = std::min((*list)[stage].value_or(price), price);
  }
};

/// A stage without split backwards counts the whole backward as backward-input. With some split
/// (DualPipe), both parts together are at most as long as a whole backward.
void set_backward(const ShortestPasses& passes, std::size_t stage, StageTimes& times) {
  const std::optional<Ticks> whole = passes.backward[stage];
  if (!passes.input[stage]) {
    times.backward_input[stage] = whole.value_or(Ticks());
    return;
  }
  const Ticks input = std::min(*passes.input[stage], whole.value_or(*passes.input[stage]));
  const Ticks weight = passes.weight[stage].value_or(Ticks());
  times.backward_input[stage] = input;
  times.backward_weight[stage] = whole ? std::min(weight, *whole - input) : weight;
}

}  // namespace

bool sets_pass_times(const WhatIf& what_if) {
  return what_if.forward || what_if.backward_input || what_if.backward_weight;
}

void apply(const WhatIf& what_if, TaskGraph& graph, std::vector<WorkPrice>& prices) {
  MW_CHECK(prices.size() == graph.works.size());
  for (std::size_t w = 0; w < prices.size(); ++w) {
    const TaskKind kind = graph.works[w].kind;
    if (const std::optional<Ticks> time = time_of(kind, what_if)) set_duration(prices[w], *time);
    if (kind == TaskKind::kSend && what_if.message) {
      prices[w].duration = Ticks();
      prices[w].latency = *what_if.message;
    }
  }
  constexpr double kMost = 1000;
  for (const double factor : what_if.slowness) MW_CHECK(factor >= 1 / kMost && factor <= kMost);
  const auto is_slowed = [](double factor) { return factor != 1; };
  if (std::any_of(what_if.slowness.begin(), what_if.slowness.end(), is_slowed))
    slow_ranks(what_if.slowness, graph, prices);
}

std::optional<StageTimes> stage_times_of(const TaskGraph& graph,
                                         const std::vector<WorkPrice>& prices,
                                         const Schedule& schedule) {
  const std::size_t stages = schedule.placement.device_of_stage.size();
  if (schedule.output_barriers > 0) return std::nullopt;  // the output layer runs in other tasks
  StageTimes times;
  times.forward.assign(stages, Ticks());
  times.backward_input.assign(stages, Ticks());
  times.backward_weight.assign(stages, Ticks());
  ShortestPasses passes(stages);
  std::vector<std::int64_t> forwards(stages);
  std::optional<Ticks> fastest_message;
  for (const Task& task : graph.tasks) {
    const WorkPrice& price = prices[task.work.index()];
    if (task.kind == TaskKind::kSend) {
      const Ticks message = price.duration + price.latency;
      fastest_message = std::min(fastest_message.value_or(message), message);
    }
    if (passes.list_of(task.kind) == nullptr || task.stage < 0) continue;
    const auto stage = static_cast<std::size_t>(task.stage);
    if (stage >= stages) return std::nullopt;
    passes.note(task.kind, stage, price.duration);
    if (task.kind == TaskKind::kForward) ++forwards[stage];
  }
  std::vector<std::int64_t> due(stages);
  for (const int route : schedule.route_of_microbatch)
    for (const StageId stage : schedule.placement.routes[static_cast<std::size_t>(route)])
      ++due[stage.index()];
  if (forwards != due) return std::nullopt;  // split passes, or several ranks run each stage
  for (std::size_t stage = 0; stage < stages; ++stage) {
    times.forward[stage] = passes.forward[stage].value_or(Ticks());
    set_backward(passes, stage, times);
  }
  times.latency = fastest_message.value_or(Ticks());
  return times;
}

}  // namespace meshwright
