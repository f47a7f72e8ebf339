/// Base class of decorators for TaskActions: forwards every call; a decorator overrides the ones it
/// extends.
#pragma once

#include <utility>

#include "executor/tasks/task_actions.hpp"

namespace meshwright {

/// Does not own the actions, which must outlive it.
class ForwardingActions : public TaskActions {
 public:
  explicit ForwardingActions(TaskActions& actions) : actions_(actions) {}
  void set_wait_callback(std::function<void(bool begins)> callback) override {
    actions_.set_wait_callback(std::move(callback));
  }
  void wait_for_compute_slot() override { actions_.wait_for_compute_slot(); }
  void begin_step(int step) override { actions_.begin_step(step); }
  void begin_task(const RunTask& task) override { actions_.begin_task(task); }
  void end_task(const RunTask& task) override { actions_.end_task(task); }
  void compute(const RunTask& task, const LayerStep& step, const Kernel& kernel) override {
    actions_.compute(task, step, kernel);
  }
  Ticks communicate(const RunTask& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override {
    return actions_.communicate(task, step, collective, ready);
  }
  void prepare(const RunTask& task, const Collective& collective) override {
    actions_.prepare(task, collective);
  }
  Ticks communicate(const RunTask& task, const Collective& collective,
                    std::span<const RankId> members, Ticks ready) override {
    return actions_.communicate(task, collective, members, ready);
  }
  std::span<const std::byte> outgoing(const RunTask& send) override {
    return actions_.outgoing(send);
  }
  std::span<std::byte> incoming(const RunTask& receive) override {
    return actions_.incoming(receive);
  }

 protected:
  TaskActions& actions_;
};

}  // namespace meshwright
