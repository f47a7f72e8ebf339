#include "planner/search/bounds.hpp"

#include <algorithm>
#include <optional>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Work of a device per micro-batch, and the minimum time before and after it.
struct DeviceLoad {
  Ticks work;                 ///< all passes of one micro-batch
  Ticks awaited;              ///< the passes among them that earlier stages wait for
  std::optional<Ticks> head;  ///< before the first forward can start
  std::optional<Ticks> tail;  ///< after the end of the last awaited pass
};

void take_least(std::optional<Ticks>& least, Ticks value) {
  if (!least || value < *least) least = value;
}

std::vector<DeviceLoad> device_loads(const Placement& placement, std::span<const PassTimes> parts,
                                     bool splits_backward) {
  std::vector<DeviceLoad> loads(static_cast<std::size_t>(placement.devices));
  for (const std::vector<StageId>& route : placement.routes) {
    Ticks forwards, backwards;  // of the earlier stages
    for (const StageId stage : route) {
      DeviceLoad& load = loads[placement.device_of_stage[stage.index()].index()];
      const PassTimes& passes =
          parts[static_cast<std::size_t>(placement.part_of_stage[stage.index()])];
      const Ticks awaited = splits_backward ? passes.backward_input : passes.backward;
      load.work += passes.forward + passes.backward;
      load.awaited += passes.forward + awaited;
      take_least(load.head, forwards);
      take_least(load.tail, backwards);
      forwards += passes.forward;
      backwards += awaited;
    }
  }
  return loads;
}

/// Minimum reduction time over the devices where a route starts: the last gradient arrives there.
Ticks reduction_behind_routes(const Placement& placement, const StepEndTimes& step_end) {
  std::optional<Ticks> least;
  for (const std::vector<StageId>& route : placement.routes)
    take_least(least, step_end.reduction[placement.device_of_stage[route.front().index()].index()]);
  return least.value_or(Ticks());
}

}  // namespace

Ticks step_bound(const Placement& placement, std::span<const PassTimes> parts,
                 std::int64_t microbatches, bool splits_backward, const StepEndTimes& step_end) {
  const std::vector<DeviceLoad> loads = device_loads(placement, parts, splits_backward);
  const Ticks behind_routes = reduction_behind_routes(placement, step_end);
  // Micro-batches are distributed evenly over the routes.
  const auto per_route = microbatches / static_cast<std::int64_t>(placement.routes.size());
  Ticks reduced;
  for (std::size_t d = 0; d < loads.size(); ++d) {
    const Ticks head = loads[d].head.value_or(Ticks());
    const Ticks tail = loads[d].tail.value_or(Ticks());
    reduced = std::max({reduced, head + loads[d].work * per_route + step_end.reduction[d],
                        head + loads[d].awaited * per_route + tail + behind_routes});
  }
  return reduced + step_end.rest;
}

StepEndTimes step_end_times(const TaskGraph& graph, std::span<const WorkPrice> prices) {
  const std::size_t ranks = graph.ranks.size();
  std::vector<std::int32_t> last_pass(ranks, -1);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    if (is_pass(graph.tasks[i].kind))
      last_pass[static_cast<std::size_t>(graph.tasks[i].rank)] = static_cast<std::int32_t>(i);

  StepEndTimes times;
  times.reduction.assign(ranks, Ticks());
  std::vector<Ticks> after_norm(ranks);
  std::vector<bool> reducing(ranks, false), updated(ranks, false);
  Ticks norm;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const auto r = static_cast<std::size_t>(task.rank);
    const Ticks duration = prices[task.work.index()].duration;
    if (task.kind == TaskKind::kOptimizer) updated[r] = true;
    if (updated[r]) {
      after_norm[r] += duration;
    } else if (task.kind == TaskKind::kCollective && task.stage < 0) {
      norm = duration;
    } else if (task.kind == TaskKind::kCollective) {
      for (const TaskId before : graph.dependencies_of(TaskId(i)))
        if (before.value == last_pass[r]) reducing[r] = true;
      if (reducing[r]) times.reduction[r] += duration;
    }
  }
  times.rest = norm + *std::max_element(after_norm.begin(), after_norm.end());
  return times;
}

namespace {

/// Totals over the memory classes, by work item.
struct HeldByWork {
  Bytes acquired, released, transient;
};

}  // namespace

std::vector<Bytes> peak_of_passes(const LoweredStages& lowered, const Schedule& schedule) {
  std::vector<HeldByWork> held_by;
  held_by.reserve(lowered.works.size());
  for (const Work& work : lowered.works)
    held_by.push_back({total(work.acquired), total(work.released), total(work.transient)});

  std::vector<Bytes> peaks;
  peaks.reserve(schedule.orders.size());
  for (std::size_t device = 0; device < schedule.orders.size(); ++device) {
    Bytes held = total(lowered.resident[device]);
    Bytes peak = held;
    for (const Action& action : schedule.orders[device]) {
      const WorkId work = work_of(lowered.stages[action.stage.index()], action.pass);
      const HeldByWork& by = held_by[work.index()];
      held += by.acquired;
      peak = std::max(peak, held + by.transient);
      held -= by.released;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace meshwright
