/// When tasks were carried out on a device whose host runs ahead: actions that record an event at
/// both ends of each task, and the times of these once all have happened.
#pragma once

#include <vector>

#include "executor/forwarded_actions.hpp"
#include "executor/rank_run.hpp"
#include "kernels/device_queue.hpp"

namespace meshwright {

/// Of one rank; actions and queue belong to others and outlive this.
class DeviceSpans final : public ForwardedActions {
 public:
  DeviceSpans(TaskActions& actions, DeviceQueue& queue)
      : ForwardedActions(actions), queue_(queue) {}
  DeviceSpans(const DeviceSpans&) = delete;
  DeviceSpans& operator=(const DeviceSpans&) = delete;
  ~DeviceSpans() override;

  /// Before a step's first task, when time zero of the step is `origin`. Waits for the device, so
  /// that both clocks can be read at one moment.
  void start(RankClock::Moment origin);
  /// Of the tasks that have ended since, in the order in which they ended: those from number `from`
  /// on. Waits for the device.
  void correct(std::span<TaskSpan> spans, std::size_t from = 0);

  void begin_task(const Task& task) override {
    record();
    actions_.begin_task(task);
  }
  void end_task(const Task& task) override {
    actions_.end_task(task);
    record();
  }

 private:
  void record();
  DeviceQueue& queue_;
  Ticks zero_;                 ///< of the step's time, when the first event was recorded
  std::vector<void*> events_;  ///< the first, then two a task; kept from step to step
  std::size_t used_ = 0;
};

}  // namespace meshwright
