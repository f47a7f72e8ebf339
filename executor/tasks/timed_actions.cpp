#include "executor/tasks/timed_actions.hpp"

#include <utility>

namespace meshwright {
void TimedActions::compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) {
  const bool goes_on = !group_.empty() && layer_ == step.place.layer &&
                       group_.back().source == kernel.source && group_.back().phase == kernel.phase;
  if (!goes_on) close_group();
  if (group_.empty()) first_ = &kernel;
  layer_ = step.place.layer;
  group_.push_back(kernel);
  const Ticks start = work_time_();
  actions_.compute(task, step, kernel);
  time_ += work_time_() - start;
  if (task.kind == TaskKind::kOptimizer) time_ += std::exchange(prepared_, Ticks());
}

void TimedActions::prepare(const RunTask& task, const Collective& collective) {
  const Ticks start = work_time_();
  actions_.prepare(task, collective);
  prepared_ += work_time_() - start;
}

Ticks TimedActions::communicate(const RunTask& task, const LayerStep& step,
                                const Collective& collective, Ticks ready) {
  close_group();
  return actions_.communicate(task, step, collective, ready);
}

void TimedActions::end_task(const RunTask& task) {
  close_group();
  actions_.end_task(task);
}

void TimedActions::close_group() {
  if (group_.empty()) return;
  TimedKernels& timed = timed_[{first_, group_.size()}];
  if (timed.kernels.empty()) timed.kernels = group_;
  timed.times.push_back(time_);
  group_.clear();
  time_ = Ticks();
}

std::vector<TimedKernels> TimedActions::take() {
  std::vector<TimedKernels> all;
  for (auto& [first, timed] : timed_) all.push_back(std::move(timed));
  timed_.clear();
  return all;
}

}  // namespace meshwright
