#include "planner/synthesis/schedule_memory_bounds.hpp"

#include <algorithm>
#include <vector>

#include "core/schedule/block_keys.hpp"

namespace meshwright {
namespace {

/// One stage of a device, in the order of the route.
struct Visit {
  Ticks forward, input, weight;
  std::int64_t held = 0, freed_by_input = 0;
  Ticks arrival;         ///< of the first micro-batch, without waiting for devices
  Ticks loop;            ///< from the start of F to the start of I
  Ticks way_out;         ///< from the start of F until the micro-batch has left the device
  Ticks way_out_of_all;  ///< from the start of F until it has left all devices
};

/// From the start of F on `visit` to the end of W on an earlier one of the route.
Ticks way_back(const Visit& earlier, const Visit& visit) {
  return earlier.arrival - visit.arrival + earlier.loop + earlier.input + earlier.weight;
}

std::vector<std::vector<Visit>> visits_of(const DispatchTask& task) {
  const std::vector<StageId>& route = task.placement.routes.front();
  std::vector<Visit> visits(route.size());
  std::vector<Ticks> lag(route.size());  // from the stage to the next one
  Ticks arrival;
  for (std::size_t i = 0; i < route.size(); ++i) {
    const std::size_t s = route[i].index();
    visits[i].forward = task.times.forward[s];
    visits[i].input = task.times.backward_input[s];
    visits[i].weight = task.times.backward_weight[s];
    visits[i].held = task.held[s];
    visits[i].freed_by_input = task.freed_by_input[s];
    visits[i].arrival = arrival;
    if (i + 1 < route.size() &&
        task.placement.device_of_stage[s] != task.placement.device_of_stage[route[i + 1].index()])
      lag[i] = latency_between(task.times, route[i], route[i + 1]);
    arrival += visits[i].forward + lag[i];
  }
  for (std::size_t i = route.size(); i-- > 0;) {
    visits[i].loop = visits[i].forward;
    if (i + 1 < route.size())
      visits[i].loop += lag[i] * 2 + visits[i + 1].loop + visits[i + 1].input;
  }
  for (std::size_t i = 0; i < route.size(); ++i)
    for (std::size_t r = 0; r <= i; ++r)
      visits[i].way_out_of_all = std::max(visits[i].way_out_of_all, way_back(visits[r], visits[i]));
  std::vector<std::vector<Visit>> by_device(task.limits.size());
  for (std::size_t i = 0; i < route.size(); ++i)
    by_device[task.placement.device_of_stage[route[i].index()].index()].push_back(visits[i]);
  for (auto& own : by_device)
    for (Visit& visit : own)
      for (const Visit& other : own)
        if (other.arrival <= visit.arrival)
          visit.way_out = std::max(visit.way_out, way_back(other, visit));
  return by_device;
}

/// Products of time and bytes do not fit in 64 bits.
__extension__ using Wide = __int128;
Ticks rounded_up(Wide a, std::int64_t b) {
  return Ticks(static_cast<std::int64_t>((a + b - 1) / b));
}

/// Memory-time that is unused while the level rises from 0 to the limit in steps of at most `step`,
/// one per `pause`; `length` is the duration of the ramp.
struct Ramp {
  Wide unused = 0;
  Ticks length;
};
Ramp ramp_of(std::int64_t limit, std::int64_t step, Ticks pause) {
  Ramp ramp;
  if (step <= 0) return ramp;
  const std::int64_t steps = (limit - 1) / step;  // largest number of steps below the limit
  ramp.length = pause * steps;
  ramp.unused = Wide(pause.value) * (steps * limit - step * (steps * (steps + 1) / 2));
  return ramp;
}

Ticks area_bound(const std::vector<Visit>& visits, Wide memory_time, std::int64_t limit) {
  std::int64_t most_taken = 0, most_freed = 0;
  Ticks least_forward = Ticks::max(), least_backward = Ticks::max();
  for (const Visit& v : visits) {
    most_taken = std::max(most_taken, v.held);
    most_freed = std::max({most_freed, v.freed_by_input, v.held - v.freed_by_input});
    if (v.held > 0) least_forward = std::min(least_forward, v.forward);
    if (v.freed_by_input > 0) least_backward = std::min(least_backward, v.input);
    if (v.held > v.freed_by_input) least_backward = std::min(least_backward, v.weight);
  }
  const Ticks plain = rounded_up(memory_time, limit);
  if (most_taken == 0) return plain;
  const Ramp up = ramp_of(limit, most_taken, least_forward);
  const Ramp down = ramp_of(limit, most_freed, least_backward);
  if (plain < up.length + down.length) return plain;  // they might overlap
  return rounded_up(memory_time + up.unused + down.unused, limit);
}

/// A limit of 5 is a limit of 2 for micro-batches that hold 2: a level h counts as floor(h / size),
/// which is never larger for the parts than for their sum. From F to I of visit k, a micro-batch
/// holds what it acquired on visits 1 … k. The remaining memory-time is between the first F that
/// counts and the last I, unless weight gradients count as well.
Ticks rounded_area_bound(const std::vector<Visit>& visits, std::int64_t limit, std::int64_t size,
                         int microbatches, ScheduleObjective objective) {
  Wide area = 0;
  const Visit* first = nullptr;
  bool weights_count = false;
  std::int64_t held = 0;
  for (const Visit& v : visits) {
    const std::int64_t before = held / size, rest = (v.held - v.freed_by_input) / size;
    held += v.held;
    area += Wide(held / size - before) * (v.loop + v.input).value + Wide(rest) * v.weight.value;
    weights_count = weights_count || rest > 0;
    if (first == nullptr && held / size > 0) first = &v;
  }
  if (first == nullptr || limit < size) return Ticks();
  Ticks around;
  if (objective == ScheduleObjective::kMakespan)
    around = first->arrival;
  else
    around = first->arrival - visits.front().arrival;
  if (!weights_count)
    around += (objective == ScheduleObjective::kMakespan ? first->way_out_of_all : first->way_out) -
              first->loop - first->input;
  return around + rounded_up(area * microbatches, limit / size);
}

/// Until the first gradient arrives, only forwards can run, as many as fit in memory.
Ticks idle_before_gradients(const std::vector<Visit>& visits, std::int64_t limit) {
  Ticks most;  // of forwards within the limit
  for (const Visit& v : visits) {
    if (v.held == 0) return Ticks();
    most = std::max(most, rounded_up(Wide(v.forward.value) * limit, v.held));
  }
  const Visit &first = visits.front(), &last = visits.back();
  return std::max(Ticks(), last.arrival - first.arrival + last.loop - most);
}

/// Remaining work and held memory of a micro-batch that has completed visit k and no later one.
struct Rest {
  Ticks work;
  std::int64_t held = 0;
};
Rest rest_after(const std::vector<Visit>& visits, std::size_t k) {
  Rest rest;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    rest.work += visits[i].input + visits[i].weight;
    if (i <= k) rest.held += visits[i].held;
    if (i > k) rest.work += visits[i].forward;
  }
  return rest;
}

/// After the start of F of the last micro-batch on visit k, all remaining work belongs to
/// micro-batches that have started that visit and whose activations are held.
Ticks idle_after_forwards(const std::vector<Visit>& visits, std::size_t k, std::int64_t limit) {
  std::vector<Rest> states;  // of other micro-batches: after visit k, k + 1, …, gradients, W
  for (std::size_t i = k; i < visits.size(); ++i) states.push_back(rest_after(visits, i));
  Rest back;
  for (const Visit& v : visits) {
    back.work += v.input + v.weight;
    back.held += v.held;
    states.push_back(back);
    states.push_back({v.weight, v.held - v.freed_by_input});
  }
  const Rest own = rest_after(visits, k);
  Ticks others;
  for (const Rest& state : states) {
    if (state.work == Ticks()) continue;
    if (state.held <= 0) return Ticks();
    const std::int64_t room = std::max<std::int64_t>(limit - own.held, 0);
    others = std::max(others, rounded_up(Wide(state.work.value) * room, state.held));
  }
  return std::max(Ticks(), visits[k].way_out - visits[k].forward - own.work - others);
}

Ticks idle_of(const std::vector<Visit>& visits, std::int64_t limit, int microbatches) {
  const Ticks before = idle_before_gradients(visits, limit);
  Ticks idle = before;
  std::int64_t held = 0;
  for (std::size_t k = 0; k < visits.size(); ++k) {
    held += visits[k].held;
    const Ticks after = idle_after_forwards(visits, k, limit);
    // The last forward waits for a gradient: the two idle times do not overlap.
    const bool is_apart = held * microbatches > limit;
    idle = std::max(idle, is_apart ? before + after : after);
  }
  return idle;
}

Ticks bound_of(const std::vector<Visit>& visits, const DeviceNeed& need, std::int64_t limit,
               int microbatches, ScheduleObjective objective) {
  if (visits.empty()) return Ticks();
  const Ticks area = area_bound(visits, Wide(need.memory_time.value) * microbatches, limit);
  const Ticks work = need.work * microbatches + idle_of(visits, limit, microbatches);
  const Ticks head = objective == ScheduleObjective::kMakespan ? visits.front().arrival : Ticks();
  Ticks bound = head + std::max(area, work);
  std::int64_t held = 0;
  for (const Visit& v : visits) {
    held += v.held;
    if (held > 0)
      bound = std::max(bound, rounded_area_bound(visits, limit, held, microbatches, objective));
  }
  return bound;
}

}  // namespace

Ticks memory_bound(const DispatchTask& task, ScheduleObjective objective) {
  Ticks bound;
  for (std::size_t d = 0; d < task.limits.size(); ++d)
    bound = std::max(bound, memory_bound(task, d, objective));
  return bound;
}

Ticks memory_bound(const DispatchTask& task, std::size_t device, ScheduleObjective objective) {
  return bound_of(visits_of(task)[device], needs_of_one_microbatch(task)[device],
                  std::max<std::int64_t>(task.limits[device], 1), task.microbatches, objective);
}

}  // namespace meshwright
