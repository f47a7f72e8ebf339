/// When tasks were carried out on a device whose host runs ahead: actions that record an event at
/// both ends of each task, and the times of these once all have happened.
#pragma once

#include <vector>

#include "executor/rank_run.hpp"
#include "executor/task_actions.hpp"
#include "kernels/device_queue.hpp"

namespace meshwright {

/// Of one rank; actions and queue belong to others and outlive this.
class DeviceSpans final : public TaskActions {
 public:
  DeviceSpans(TaskActions& actions, DeviceQueue& queue) : actions_(actions), queue_(queue) {}
  DeviceSpans(const DeviceSpans&) = delete;
  DeviceSpans& operator=(const DeviceSpans&) = delete;
  ~DeviceSpans() override;

  /// Before a step's first task, when time zero of the step is `origin`. Waits for the device, so
  /// that both clocks can be read at one moment.
  void start(RankClock::Moment origin);
  /// Of the tasks that have ended since, in the order in which they ended. Waits for the device.
  void correct(std::span<TaskSpan> spans);

  void tell_of_waits(std::function<void(bool begins)> tell) override {
    actions_.tell_of_waits(std::move(tell));
  }
  void wait_for_turn() override { actions_.wait_for_turn(); }
  void begin_step(int step) override { actions_.begin_step(step); }
  void begin_task(const Task& task) override {
    record();
    actions_.begin_task(task);
  }
  void end_task(const Task& task) override {
    actions_.end_task(task);
    record();
  }
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

 private:
  void record();
  TaskActions& actions_;
  DeviceQueue& queue_;
  Ticks zero_;                 ///< of the step's time, when the first event was recorded
  std::vector<void*> events_;  ///< the first, then two a task; kept from step to step
  std::size_t used_ = 0;
};

}  // namespace meshwright
