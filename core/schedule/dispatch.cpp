#include "core/schedule/dispatch.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/schedule/generators.hpp"

namespace meshwright {
namespace {
std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
}  // namespace

DispatchTask counted_task(const Placement& placement, int microbatches, const StageTimes& times,
                          std::span<const int> caps) {
  const std::size_t stages = placement.device_of_stage.size();
  DispatchTask task{placement, microbatches, times, {}, {}, {}};
  task.held.assign(stages, 1);
  task.freed_by_input.assign(stages, 0);
  const std::int64_t all = static_cast<std::int64_t>(stages) * microbatches;
  task.limits.assign(static_cast<std::size_t>(placement.devices), all);
  for (std::size_t d = 0; d < caps.size(); ++d) task.limits[d] = caps[d];
  return task;
}

Dispatcher::Dispatcher(const DispatchTask& task)
    : task_(task),
      stages_(static_cast<int>(task.placement.device_of_stage.size())),
      devices_(at(task.placement.devices)),
      work_(devices_.size()),
      arrivals_(2 * at(stages_) * at(task.microbatches)),
      starts_(3 * at(stages_) * at(task.microbatches)),
      link_free_(devices_.size() * devices_.size()),
      orders_(devices_.size()) {
  MW_CHECK(task.placement.routes.size() == 1);
  const std::vector<StageId>& route = task.placement.routes.front();
  for (std::size_t i = 0; i < route.size(); ++i) {
    const std::size_t s = route[i].index(), d = task.placement.device_of_stage[s].index();
    Visit visit{route[i].value, task.held[s], task.freed_by_input[s], 0, {}, -1, -1};
    visit.duration = {task.times.forward[s], task.times.backward_input[s],
                      task.times.backward_weight[s]};
    if (i > 0) visit.previous = route[i - 1].value;
    if (i + 1 < route.size()) visit.next = route[i + 1].value;
    devices_[d].visits.push_back(visit);
    for (const Ticks duration : visit.duration) work_[d] += duration.value * task.microbatches;
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::int64_t held = 0;
    auto& visits = devices_[d].visits;
    for (auto visit = visits.rbegin(); visit != visits.rend(); ++visit)
      visit->held_from_here = held += visit->held;
    devices_[d].limit = task.limits[d];
    devices_[d].done.resize(visits.size());
    MW_CHECK(held <= task.limits[d]);
  }
}

void Dispatcher::reset() {
  std::fill(arrivals_.begin(), arrivals_.end(), kNotSent);
  std::fill(link_free_.begin(), link_free_.end(), Ticks());
  for (std::int32_t j = 0; j < task_.microbatches; ++j)
    arrival(kForward, task_.placement.routes.front().front().value, j) = Ticks();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    std::fill(device.done.begin(), device.done.end(), std::array<std::int32_t, 3>{});
    device.level = 0;
    device.free = device.first = Ticks();
    device.work_left = Ticks(work_[d]);
    device.has_started = false;
    orders_[d].clear();
  }
}

bool Dispatcher::has_room(const Device& device, std::size_t visit) const {
  if (device.level + device.visits[visit].held > device.limit) return false;
  // Of the visits before k: what one micro-batch holds, and all that have passed them.
  std::int64_t held = 0, passed = 0;
  for (std::size_t k = 0; k < device.visits.size(); ++k) {
    const std::int64_t reached = device.done[k][kForward];
    const Visit& at_k = device.visits[k];
    if (k > visit && passed - reached * held + at_k.held_from_here > device.limit) return false;
    held += at_k.held;
    passed += (reached + (k == visit ? 1 : 0)) * at_k.held;
  }
  return true;
}

Ticks Dispatcher::key_of(const Device& device, std::size_t visit, int pass) const {
  return rule_->keys[operation(pass, device.visits[visit].stage, device.done[visit][at(pass)])];
}

/// Operations that the device could start next, at most `slack` ahead of key order. A weight
/// gradient that frees memory for a forward is as urgent as the forward.
void Dispatcher::collect(const Device& device) {
  open_.clear();
  Ticks head = Ticks::max(), blocked = Ticks::max();
  for (std::size_t k = 0; k < device.visits.size(); ++k) {
    const auto& done = device.done[k];
    for (const int pass : {kForward, kInput}) {
      if (done[at(pass)] == task_.microbatches) continue;
      const Ticks key = key_of(device, k, pass);
      if (pass == kForward && !has_room(device, k)) {
        blocked = std::min(blocked, key);
        continue;
      }
      head = std::min(head, key);
      const Ticks ready = arrival(pass, device.visits[k].stage, done[at(pass)]);
      if (ready == kNotSent) continue;
      open_.push_back({std::max(ready, device.free), static_cast<std::int32_t>(k), pass, key});
    }
  }
  if (rule_->slack != Ticks::max() && !is_stuck_)
    std::erase_if(open_, [&](const Choice& c) { return c.key > head + rule_->slack; });
  for (std::size_t k = 0; k < device.visits.size(); ++k)
    if (device.done[k][kWeight] < device.done[k][kInput])
      open_.push_back({device.free, static_cast<std::int32_t>(k), kWeight,
                       std::min(blocked, key_of(device, k, kWeight))});
}

void Dispatcher::choose(std::size_t d) {
  Device& device = devices_[d];
  collect(device);
  device.choice = {};
  Ticks soonest = Ticks::max(), first_end = Ticks::max();
  for (const Choice& c : open_) {
    soonest = std::min(soonest, c.start);
    first_end = std::min(first_end, c.start + device.visits[at(c.visit)].duration[at(c.pass)]);
  }
  if (open_.empty()) return;
  const double wait = rule_->patience * static_cast<double>((first_end - soonest).value);
  const Ticks limit = soonest + Ticks(static_cast<std::int64_t>(wait));
  for (const Choice& c : open_)
    if (c.start <= limit && (device.choice.visit < 0 || c.key < device.choice.key))
      device.choice = c;
}

void Dispatcher::send(std::int32_t from_stage, std::int32_t to_stage, int pass,
                      std::int32_t microbatch, Ticks end) {
  const std::size_t from = task_.placement.device_of_stage[at(from_stage)].index();
  const std::size_t to = task_.placement.device_of_stage[at(to_stage)].index();
  Ticks& ready = arrival(pass, to_stage, microbatch);
  if (from == to) {
    ready = end;
    return;
  }
  Ticks& free = link_free_[from * devices_.size() + to];
  const Ticks start = std::max(end, free);
  free = start + task_.times.link_occupancy;
  ready = start + latency_between(task_.times, StageId(from_stage), StageId(to_stage));
  choose(to);
}

void Dispatcher::put(std::size_t d) {
  Device& device = devices_[d];
  const Choice choice = device.choice;
  const Visit& visit = device.visits[at(choice.visit)];
  const std::int32_t microbatch = device.done[at(choice.visit)][at(choice.pass)]++;
  const Ticks duration = visit.duration[at(choice.pass)], end = choice.start + duration;
  if (!std::exchange(device.has_started, true)) device.first = choice.start;
  device.free = end;
  starts_[operation(choice.pass, visit.stage, microbatch)] = choice.start;
  device.work_left -= duration;
  orders_[d].push_back({visit.stage, choice.pass});
  if (choice.pass == kForward) {
    device.level += visit.held;
    if (visit.next < 0)
      arrival(kInput, visit.stage, microbatch) = end;  // the loss is part of the last stage
    else
      send(visit.stage, visit.next, kForward, microbatch, end);
  } else if (choice.pass == kInput) {
    device.level -= visit.freed_by_input;
    if (visit.previous >= 0) send(visit.stage, visit.previous, kInput, microbatch, end);
  } else {
    device.level -= visit.held - visit.freed_by_input;
  }
  choose(d);
}

std::optional<DispatchOutcome> Dispatcher::run(const DispatchRule& rule, Ticks longest) {
  MW_CHECK(rule.keys.size() == starts_.size());
  rule_ = &rule;
  is_stuck_ = false;
  reset();
  for (std::size_t d = 0; d < devices_.size(); ++d) choose(d);
  const int steps = 3 * stages_ * task_.microbatches;
  for (int step = 0; step < steps; ++step) {
    std::size_t soonest = 0;
    for (std::size_t d = 1; d < devices_.size(); ++d)
      if (devices_[d].choice.start < devices_[soonest].choice.start) soonest = d;
    if (devices_[soonest].choice.visit < 0) {
      MW_CHECK(!is_stuck_);
      is_stuck_ = true;
      for (std::size_t d = 0; d < devices_.size(); ++d) choose(d);
      --step;
      continue;
    }
    is_stuck_ = false;
    put(soonest);
    const Device& device = devices_[soonest];
    if (device.free - device.first + device.work_left > longest) return std::nullopt;
  }
  DispatchOutcome outcome;
  Ticks first = Ticks::max();
  for (const Device& device : devices_) {
    first = std::min(first, device.first);
    outcome.makespan = std::max(outcome.makespan, device.free);
    outcome.period = std::max(outcome.period, device.free - device.first);
  }
  outcome.makespan -= first;
  return outcome;
}

Schedule Dispatcher::schedule() const {
  constexpr std::array kPasses{Pass::kForward, Pass::kBackwardInput, Pass::kBackwardWeight};
  Schedule schedule = empty_schedule("", task_.placement, task_.microbatches);
  std::vector<std::array<std::int32_t, 3>> done(at(stages_));
  for (std::size_t d = 0; d < orders_.size(); ++d)
    for (const Step& step : orders_[d])
      schedule.orders[d].push_back({StageId(step.stage), kPasses[at(step.pass)],
                                    MicrobatchId(done[at(step.stage)][at(step.pass)]++)});
  return schedule;
}

}  // namespace meshwright
