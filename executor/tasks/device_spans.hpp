/// Times tasks on a device that the host runs ahead of. Each task is enqueued on the lane of its
/// graph stream, so that lanes overlap as in the graph, between two events that give its start and
/// end once the device has caught up.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/tasks/forwarding_actions.hpp"
#include "executor/tasks/rank_run.hpp"
#include "kernels/device/activity.hpp"
#include "kernels/device/queue.hpp"
#include "kernels/device/ranges.hpp"

namespace meshwright {

/// Value of DeviceActivity::task for a task of a step; never 0.
inline std::uint64_t activity_number(int step, TaskId task) {
  return (static_cast<std::uint64_t>(step) << 32U) + static_cast<std::uint64_t>(task.value) + 1;
}
inline TaskId task_of_activity(std::uint64_t number) {
  return TaskId(static_cast<std::int32_t>(number & 0xffff'ffffU) - 1);
}

/// For one rank. Does not own actions, graph and queue; they must outlive it.
class DeviceSpans final : public ForwardingActions {
 public:
  /// The recorder, if any, is notified of every task by its activity_number(), ranges by its name.
  DeviceSpans(TaskActions& actions, const TaskGraph& graph, DeviceQueue& queue,
              const ActivityTable* recorder, const RangeTable* ranges)
      : ForwardingActions(actions),
        graph_(graph),
        queue_(queue),
        recorder_(recorder),
        ranges_(ranges),
        ends_(graph.tasks.size()) {}
  DeviceSpans(const DeviceSpans&) = delete;
  DeviceSpans& operator=(const DeviceSpans&) = delete;
  ~DeviceSpans() override;

  /// To be called before the first task of a step whose time zero is `origin`. Waits for the
  /// device, so that both clocks are read at the same moment.
  void start(RankClock::Moment origin);
  /// Replaces the times of spans[from..] with those measured on the device. `spans` holds the tasks
  /// that have ended since start(), in that order. Waits for the device. A task starts once its
  /// lane is free and its dependencies have ended; any further wait, such as for a slower rank,
  /// counts as part of the task.
  void correct(std::span<TaskSpan> spans, std::size_t from = 0);

  void begin_step(int step) override {
    step_ = step;
    actions_.begin_step(step);
  }
  void begin_task(const RunTask& task) override {
    queue_.switch_to_lane(static_cast<int>(task.stream));
    if (recorder_ != nullptr) recorder_->enter(activity_number(step_, task.id));
    if (ranges_ != nullptr) ranges_->begin(stable_name(graph_, task.id).c_str());
    record();
    actions_.begin_task(task);
  }
  void end_task(const RunTask& task) override {
    actions_.end_task(task);
    record();
    if (ranges_ != nullptr) ranges_->end();
    if (recorder_ != nullptr) recorder_->leave();
    queue_.switch_to_lane(static_cast<int>(Stream::kCompute));
  }

 private:
  void record();
  const TaskGraph& graph_;
  DeviceQueue& queue_;
  const ActivityTable* recorder_;
  const RangeTable* ranges_;
  int step_ = 0;
  std::vector<Ticks> ends_;    ///< by task; valid for those that have ended
  Ticks zero_;                 ///< time since the step's origin of the first event
  std::vector<void*> events_;  ///< one, then two per task; reused across steps
  std::size_t used_ = 0;
};

}  // namespace meshwright
