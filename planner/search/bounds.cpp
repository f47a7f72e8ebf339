#include "planner/search/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Work of a device per micro-batch, and the minimum time before and after it.
struct DeviceLoad {
  Ticks work;                 ///< all passes of one micro-batch
  Ticks awaited;              ///< the passes among them that earlier stages wait for
  std::optional<Ticks> head;  ///< before the first forward can start
  std::optional<Ticks> tail;  ///< after the end of the last awaited pass
  std::optional<Ticks> back;  ///< before the first backward can start
  Ticks backward;             ///< of its stage, if it holds one
  int stages = 0;
};

void take_least(std::optional<Ticks>& least, Ticks value) {
  if (!least || value < *least) least = value;
}

std::vector<DeviceLoad> device_loads(const Placement& placement, std::span<const PassTimes> parts,
                                     bool splits_backward) {
  std::vector<DeviceLoad> loads(static_cast<std::size_t>(placement.devices));
  const auto passes_of = [&](StageId stage) -> const PassTimes& {
    return parts[static_cast<std::size_t>(placement.part_of_stage[stage.index()])];
  };
  const auto awaited_of = [&](StageId stage) {
    return splits_backward ? passes_of(stage).backward_input : passes_of(stage).backward;
  };
  for (const std::vector<StageId>& route : placement.routes) {
    Ticks there_and_back;  // all forwards, and the backwards of the stages behind
    for (const StageId stage : route)
      there_and_back += passes_of(stage).forward + awaited_of(stage);
    Ticks forwards, backwards;  // of the earlier stages
    for (const StageId stage : route) {
      DeviceLoad& load = loads[placement.device_of_stage[stage.index()].index()];
      const PassTimes& passes = passes_of(stage);
      const Ticks awaited = awaited_of(stage);
      load.work += passes.forward + passes.backward;
      load.awaited += passes.forward + awaited;
      take_least(load.head, forwards);
      take_least(load.tail, backwards);
      there_and_back -= awaited;
      take_least(load.back, there_and_back);
      load.backward = passes.backward;
      ++load.stages;
      forwards += passes.forward;
      backwards += awaited;
    }
  }
  return loads;
}

/// The last micro-batch of a route passes all its stages forward and back, after the others have
/// passed the stage that holds them up longest.
Ticks time_of_route(const std::vector<StageId>& route, const Placement& placement,
                    std::span<const PassTimes> parts, std::int64_t microbatches,
                    bool splits_backward) {
  Ticks sum, longest_forward, longest_backward;
  for (const StageId stage : route) {
    const PassTimes& passes =
        parts[static_cast<std::size_t>(placement.part_of_stage[stage.index()])];
    const Ticks awaited = splits_backward ? passes.backward_input : passes.backward;
    sum += passes.forward + awaited;
    longest_forward = std::max(longest_forward, passes.forward);
    longest_backward = std::max(longest_backward, awaited);
  }
  return sum + std::max(longest_forward, longest_backward) * (microbatches - 1);
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
    if (step_end.reductions.empty() || per_route == 0) continue;
    Ticks begun = loads[d].back.value_or(Ticks());
    if (step_end.reduces_in_last_pass && loads[d].stages == 1)
      begun = std::max(begun, head + loads[d].work * per_route - loads[d].backward);
    reduced = std::max(reduced, begun + step_end.reductions[d]);
  }
  if (per_route > 0)
    for (const std::vector<StageId>& route : placement.routes)
      reduced = std::max(reduced, behind_routes + time_of_route(route, placement, parts, per_route,
                                                                splits_backward));
  return std::max(reduced, step_end.communication) + step_end.rest;
}

namespace {

/// The gathers of one stage on one rank.
struct GathersFound {
  std::map<std::int32_t, Ticks> works;         ///< of all units; passes share them
  std::pair<std::int32_t, std::int32_t> unit;  ///< of the last gather: micro-batch, task before it
  Ticks of_unit, of_largest_unit;
  Stream stream = Stream::kData;
  std::int32_t part = 0;

  void add(const TaskGraph& graph, std::size_t i, Ticks duration) {
    const Task& task = graph.tasks[i];
    const std::span<const TaskId> before = graph.dependencies_of(TaskId(i));
    const std::pair of(task.microbatch, before.empty() ? -1 : before.front().value);
    of_unit = of == unit ? of_unit + duration : duration;
    unit = of;
    of_largest_unit = std::max(of_largest_unit, of_unit);
    works[task.work.value] = duration;
    stream = task.stream;
    part = graph.works[task.work.index()].collective.parameters.part;
  }
  Ticks of_pass() const {
    Ticks sum;
    for (const auto& [work, duration] : works) sum += duration;
    return sum;
  }
};

}  // namespace

StepEndTimes step_end_times(const TaskGraph& graph, std::span<const WorkPrice> prices,
                            CountedGathers counted, std::int64_t first_counted) {
  std::map<std::pair<std::size_t, std::int16_t>, GathersFound> gathers;  // by rank and stage
  const std::size_t ranks = graph.ranks.size();
  std::vector<std::int32_t> last_pass(ranks, -1);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    if (is_pass(graph.tasks[i].kind))
      last_pass[static_cast<std::size_t>(graph.tasks[i].rank)] = static_cast<std::int32_t>(i);

  StepEndTimes times;
  times.reduction.assign(ranks, Ticks());
  std::vector<Ticks> after_norm(ranks);
  std::vector<bool> reducing(ranks, false), updated(ranks, false);
  std::vector<Ticks> stream_times(ranks * kStreamCount);
  Ticks norm;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const auto r = static_cast<std::size_t>(task.rank);
    const Ticks duration = prices[task.work.index()].duration;
    if (task.kind == TaskKind::kOptimizer) updated[r] = true;
    if (task.kind == TaskKind::kCollective && task.stage >= 0 && !updated[r]) {
      if (graph.works[task.work.index()].collective.kind == CollectiveKind::kAllGather)
        gathers[{r, task.stage}].add(graph, i, duration);
      else if (task.microbatch < 0 || task.microbatch >= first_counted)
        stream_times[r * kStreamCount + static_cast<std::size_t>(task.stream)] += duration;
    }
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
  times.communication = *std::max_element(stream_times.begin(), stream_times.end());
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto first = stream_times.begin() + static_cast<std::ptrdiff_t>(r * kStreamCount);
    times.reductions.push_back(*std::max_element(first, first + kStreamCount));
  }
  if (counted == CountedGathers::kNone) return times;
  std::int32_t last_part = 0;
  for (const auto& [place, found] : gathers) last_part = std::max(last_part, found.part);
  times.beside_gathers.assign(ranks, Ticks());
  for (const auto& [place, found] : gathers) {
    const auto& [rank, stage] = place;
    Ticks pass = found.of_pass();
    if (counted == CountedGathers::kWithoutEnds)
      for (const std::int32_t end : {0, last_part})
        if (found.part == end) pass = std::max(Ticks(), pass - found.of_largest_unit);
    times.gathers.push_back({.rank = rank,
                             .stage = StageId(stage),
                             .pass = pass,
                             .largest_unit = std::min(pass, found.of_largest_unit)});
    times.beside_gathers[rank] =
        stream_times[rank * kStreamCount + static_cast<std::size_t>(found.stream)];
  }
  return times;
}

Ticks time_with_gathers(const StepEndTimes& end, const Schedule& schedule) {
  struct Passes {
    std::int64_t count = 0, turns = 0, repeats = 0;  ///< after a pass of the stage, by direction
  };
  std::vector<Passes> of_stage(schedule.placement.device_of_stage.size());
  for (const std::vector<Action>& order : schedule.orders) {
    const Action* last = nullptr;
    for (const Action& action : order) {
      if (action.pass == Pass::kBackwardWeight) continue;  // needs no parameters
      Passes& passes = of_stage[action.stage.index()];
      ++passes.count;
      if (last != nullptr && action.stage == last->stage)
        ++((action.pass == Pass::kForward) == (last->pass == Pass::kForward) ? passes.repeats
                                                                             : passes.turns);
      last = &action;
    }
  }
  std::vector<Ticks> ranks = end.beside_gathers;
  for (const StepEndTimes::StageGathers& gathers : end.gathers) {
    const Passes& passes = of_stage[gathers.stage.index()];
    const std::int64_t kept = passes.turns + (gathers.has_one_unit() ? passes.repeats : 0);
    ranks[gathers.rank] += gathers.pass * passes.count - gathers.largest_unit * kept;
  }
  return ranks.empty() ? Ticks() : *std::max_element(ranks.begin(), ranks.end());
}

namespace {

/// Totals over the memory classes, by work item.
struct HeldByWork {
  Bytes acquired, released, transient;
};

}  // namespace

std::vector<Bytes> least_peaks(const LoweredStages& lowered, const Placement& placement,
                               std::span<const HeldActivations> moments, bool splits_backward,
                               bool has_whole_passes) {
  struct Beside {
    Bytes forward = Bytes::max(), backward = Bytes::max();
  };
  std::vector<SavedBytes> saved;                        // by stage
  std::vector<Beside> beside(lowered.resident.size());  // by rank: of the stage that needs least
  for (std::size_t s = 0; s < placement.device_of_stage.size(); ++s) {
    const StageWorks& works = lowered.stages[s];
    const Work& forward = lowered.works[works.forward.index()];
    const Bytes whole = total(forward.acquired);
    saved.push_back({whole, whole});
    Beside& least = beside[placement.device_of_stage[s].index()];
    least.forward = std::min(least.forward, total(forward.transient));
    if (splits_backward) {
      const Work& input = lowered.works[works.backward_input.index()];
      saved.back().to_weight += total(input.acquired) - total(input.released);
      least.backward = {};
    } else {
      const Work& backward = lowered.works[works.backward.index()];
      least.backward =
          std::min(least.backward, total(backward.acquired) + total(backward.transient));
    }
  }
  std::vector<Bytes> peaks = most_bytes_of(moments, placement, saved);
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    peaks[rank] += total(lowered.resident[rank]);
    // Of what is held, the last forward pass has just run, or the backward pass after it runs.
    const Bytes more = std::max(beside[rank].forward, beside[rank].backward);
    if (has_whole_passes && more < Bytes::max()) peaks[rank] += more;
  }
  return peaks;
}

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
