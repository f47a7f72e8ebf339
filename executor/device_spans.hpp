/// Tasks on a device whose host runs ahead: each is put into the lane of the queue that is the
/// graph's stream, so that lanes overlap as the graph says, between two events, by which it is
/// known when it was carried out once all have happened.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/forwarded_actions.hpp"
#include "executor/rank_run.hpp"
#include "kernels/device_activity.hpp"
#include "kernels/device_queue.hpp"

namespace meshwright {

/// DeviceActivity::task of what a task does in a step; never 0.
inline std::uint64_t activity_number(int step, TaskId task) {
  return (static_cast<std::uint64_t>(step) << 32U) + static_cast<std::uint64_t>(task.value) + 1;
}
inline TaskId task_of_activity(std::uint64_t number) {
  return TaskId(static_cast<std::int32_t>(number & 0xffff'ffffU) - 1);
}

/// Of one rank; actions, graph and queue belong to others and outlive this.
class DeviceSpans final : public ForwardedActions {
 public:
  /// A recorder, if there is one, is told of every task, by activity_number().
  DeviceSpans(TaskActions& actions, const TaskGraph& graph, DeviceQueue& queue,
              const ActivityTable* recorder = nullptr)
      : ForwardedActions(actions),
        graph_(graph),
        queue_(queue),
        recorder_(recorder),
        ends_(graph.tasks.size()) {}
  DeviceSpans(const DeviceSpans&) = delete;
  DeviceSpans& operator=(const DeviceSpans&) = delete;
  ~DeviceSpans() override;

  /// Before a step's first task, when time zero of the step is `origin`. Waits for the device, so
  /// that both clocks can be read at one moment.
  void start(RankClock::Moment origin);
  /// Of the tasks that have ended since, in the order in which they ended: those from number `from`
  /// on. Waits for the device. A task starts when its lane is free and the last one that it depends
  /// on has ended; what it waits for beyond that, as for ranks that come later, is part of it.
  void correct(std::span<TaskSpan> spans, std::size_t from = 0);

  void begin_step(int step) override {
    step_ = step;
    actions_.begin_step(step);
  }
  void begin_task(const Task& task) override {
    queue_.go_to_lane(static_cast<int>(task.stream));
    if (recorder_ != nullptr)
      recorder_->enter(
          activity_number(step_, TaskId(static_cast<std::size_t>(&task - graph_.tasks.data()))));
    record();
    actions_.begin_task(task);
  }
  void end_task(const Task& task) override {
    actions_.end_task(task);
    record();
    if (recorder_ != nullptr) recorder_->leave();
    queue_.go_to_lane(static_cast<int>(Stream::kCompute));
  }

 private:
  void record();
  const TaskGraph& graph_;
  DeviceQueue& queue_;
  const ActivityTable* recorder_;
  int step_ = 0;
  std::vector<Ticks> ends_;    ///< by task, of those that have ended
  Ticks zero_;                 ///< of the step's time, when the first event was recorded
  std::vector<void*> events_;  ///< the first, then two a task; kept from step to step
  std::size_t used_ = 0;
};

}  // namespace meshwright
