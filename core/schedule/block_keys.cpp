#include "core/schedule/block_keys.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

std::size_t device_of(const DispatchTask& task, StageId stage) {
  return task.placement.device_of_stage[stage.index()].index();
}

Ticks lag_between(const DispatchTask& task, StageId from, StageId to) {
  return device_of(task, from) == device_of(task, to) ? Ticks()
                                                      : latency_between(task.times, from, to);
}

Ticks duration_of(const DispatchTask& task, int pass, StageId stage) {
  const std::array<const std::vector<Ticks>*, 3> durations{
      &task.times.forward, &task.times.backward_input, &task.times.backward_weight};
  return (*durations[static_cast<std::size_t>(pass)])[stage.index()];
}

/// The repeated passes of every device, modulo the interval.
class RepeatedBlock {
 public:
  RepeatedBlock(const DispatchTask& task, const BlockShape& shape)
      : task_(task), shape_(shape), taken_(static_cast<std::size_t>(task.placement.devices)) {
    for (auto& offsets : offsets_) offsets.resize(task.held.size());
  }
  std::vector<Ticks> run();

 private:
  Ticks place(int pass, StageId stage, Ticks ready);
  std::int64_t phase(Ticks time) const { return time.value % shape_.interval.value; }

  const DispatchTask& task_;
  const BlockShape& shape_;
  std::array<std::vector<Ticks>, 3> offsets_;
  /// By device: phase and length of its repeated passes.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> taken_;
};

/// The end of the pass if it is placed in the first free slot from `ready` on; at `ready` if no
/// slot is long enough.
Ticks RepeatedBlock::place(int pass, StageId stage, Ticks ready) {
  const std::int64_t interval = shape_.interval.value;
  const std::int64_t length = duration_of(task_, pass, stage).value;
  auto& taken = taken_[device_of(task_, stage)];
  Ticks start = ready;
  for (bool is_free = false; !is_free && start < ready + shape_.interval * 2;) {
    is_free = true;
    for (const auto& [other_start, other_length] : taken) {
      const std::int64_t offset = (phase(start) - other_start + interval) % interval;
      std::int64_t push = 0;
      if (offset < other_length)
        push = other_length - offset;
      else if (offset + length > interval)
        push = interval - offset + other_length;
      start += Ticks(push);
      is_free = is_free && push == 0;
    }
  }
  if (start >= ready + shape_.interval * 2) start = ready;
  taken.emplace_back(phase(start), length);
  offsets_[static_cast<std::size_t>(pass)][stage.index()] = start;
  return start + Ticks(length);
}

std::vector<Ticks> RepeatedBlock::run() {
  const std::vector<StageId>& route = task_.placement.routes.front();
  const auto devices = static_cast<std::size_t>(task_.placement.devices);
  Ticks ready;
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (i > 0) ready += lag_between(task_, route[i - 1], route[i]) + shape_.wait[i / devices];
    ready = place(Dispatcher::kForward, route[i], ready);
  }
  for (std::size_t i = 0; i < route.size(); ++i) {
    const StageId stage = route[route.size() - 1 - i];
    if (i > 0)
      ready += lag_between(task_, route[route.size() - i], stage) +
               shape_.wait[(route.size() + i) / devices];
    ready = place(Dispatcher::kInput, stage, ready);
    offsets_[Dispatcher::kWeight][stage.index()] = ready + shape_.weight_wait;
  }
  std::vector<Ticks> keys;
  keys.reserve(3 * route.size() * static_cast<std::size_t>(task_.microbatches));
  for (const auto& offsets : offsets_)
    for (const Ticks offset : offsets)
      for (std::int64_t j = 0; j < task_.microbatches; ++j)
        keys.push_back(offset + shape_.interval * j);
  return keys;
}

}  // namespace

std::vector<Ticks> repeated_block_keys(const DispatchTask& task, const BlockShape& shape) {
  MW_CHECK(shape.interval > Ticks());
  return RepeatedBlock(task, shape).run();
}

std::vector<Ticks> keys_of(const DispatchTask& task, const Schedule& schedule) {
  MW_CHECK(schedule.placement == task.placement);
  MW_CHECK(schedule.microbatch_count == task.microbatches);
  const ScheduleTiming timing = time_schedule(schedule, task.times);
  const std::size_t m = static_cast<std::size_t>(task.microbatches), stages = task.held.size();
  std::vector<Ticks> keys(3 * stages * m);
  for (std::size_t d = 0; d < schedule.orders.size(); ++d)
    for (std::size_t i = 0; i < schedule.orders[d].size(); ++i) {
      const Action& a = schedule.orders[d][i];
      const std::size_t cell = a.stage.index() * m + a.microbatch.index();
      const Ticks start = timing.starts[d][i];
      if (a.pass == Pass::kForward) keys[cell] = start;
      if (a.pass == Pass::kBackward || a.pass == Pass::kBackwardInput)
        keys[stages * m + cell] = start;
      if (a.pass == Pass::kBackwardWeight) keys[2 * stages * m + cell] = start;
      if (a.pass == Pass::kBackward)
        keys[2 * stages * m + cell] = start + task.times.backward_input[a.stage.index()];
    }
  return keys;
}

std::vector<DeviceNeed> needs_of_one_microbatch(const DispatchTask& task) {
  const std::vector<StageId>& route = task.placement.routes.front();
  std::vector<DeviceNeed> needs(static_cast<std::size_t>(task.placement.devices));
  Ticks there_and_back;  // from the start of F to the end of I, built from the last stage on
  for (std::size_t i = route.size(); i-- > 0;) {
    const StageId stage = route[i];
    const std::size_t s = stage.index();
    if (i + 1 < route.size()) there_and_back += lag_between(task, stage, route[i + 1]) * 2;
    there_and_back += task.times.forward[s] + task.times.backward_input[s];
    DeviceNeed& need = needs[device_of(task, stage)];
    need.work +=
        task.times.forward[s] + task.times.backward_input[s] + task.times.backward_weight[s];
    need.memory_time += there_and_back * task.held[s] +
                        task.times.backward_weight[s] * (task.held[s] - task.freed_by_input[s]);
  }
  return needs;
}

Ticks least_interval(const DispatchTask& task) {
  Ticks interval(1);
  const std::vector<DeviceNeed> needs = needs_of_one_microbatch(task);
  for (std::size_t d = 0; d < needs.size(); ++d)
    interval = std::max({interval, needs[d].work,
                         needs[d].memory_time / std::max<std::int64_t>(task.limits[d], 1)});
  return interval;
}

}  // namespace meshwright
