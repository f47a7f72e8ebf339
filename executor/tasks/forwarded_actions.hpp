/// Base class of decorators for TaskActions: forwards every call; a decorator overrides the ones it
/// extends.
#pragma once

#include <utility>

#include "executor/tasks/task_actions.hpp"

namespace meshwright {

/// Does not own the actions, which must outlive it.
class ForwardedActions : public TaskActions {
 public:
  explicit ForwardedActions(TaskActions& actions) : actions_(actions) {}
  void tell_of_waits(std::function<void(bool begins)> tell) override {
    actions_.tell_of_waits(std::move(tell));
  }
  void wait_for_turn() override { actions_.wait_for_turn(); }
  void begin_step(int step) override { actions_.begin_step(step); }
  void begin_task(const Task& task) override { actions_.begin_task(task); }
  void end_task(const Task& task) override { actions_.end_task(task); }
  void compute(const Task& task, const LayerStep& step, const Kernel& kernel) override {
    actions_.compute(task, step, kernel);
  }
  Ticks communicate(const Task& task, const LayerStep& step, const Collective& collective,
                    Ticks ready) override {
    return actions_.communicate(task, step, collective, ready);
  }
  void prepare(const Task& task, const Collective& collective) override {
    actions_.prepare(task, collective);
  }
  Ticks communicate(const Task& task, const Collective& collective, std::span<const RankId> members,
                    Ticks ready) override {
    return actions_.communicate(task, collective, members, ready);
  }
  std::span<const std::byte> outgoing(const Task& send) override { return actions_.outgoing(send); }
  std::span<std::byte> incoming(const Task& receive) override { return actions_.incoming(receive); }

 protected:
  TaskActions& actions_;
};

}  // namespace meshwright
