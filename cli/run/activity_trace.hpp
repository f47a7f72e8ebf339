/// A trace of the kernels and copies of a GPU: `run --activity FILE`.
#pragma once

#include <span>
#include <string>

#include "cli/run/run_flags.hpp"
#include "core/graph/task_graph.hpp"
#include "kernels/device/activity.hpp"

namespace meshwright {

/// Records GPU activity during its lifetime if --activity is given. If recording is impossible,
/// prints a warning, and the run continues.
class ActivityRecording {
 public:
  explicit ActivityRecording(const RunFlags& flags);
  ActivityRecording(const ActivityRecording&) = delete;
  ActivityRecording& operator=(const ActivityRecording&) = delete;
  ~ActivityRecording();
  /// Receives the running tasks; null: not recording.
  const ActivityTable* recorder() const { return recorder_; }
  /// Stops recording and writes the file of --activity.
  void write(const TaskGraph& graph);

 private:
  const RunFlags& flags_;
  const ActivityTable* recorder_ = nullptr;
};

/// InputError if --activity conflicts with other flags.
void check_activity(const RunFlags& flags);

/// In the Trace Event Format (Google, 2016) of Perfetto and Chrome: one track per stream of a
/// device, with step and task name in each event.
std::string activity_trace(std::span<const DeviceActivity> activities, const TaskGraph& graph);

}  // namespace meshwright
