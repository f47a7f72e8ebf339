/// A trace of the kernels and copies of a GPU: `run --activity FILE`.
#pragma once

#include <optional>
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
  /// Stops recording and writes activity_file(). `rank`: of this process, if ranks are processes.
  void write(const TaskGraph& graph, std::optional<int> rank);

 private:
  const RunFlags& flags_;
  const ActivityTable* recorder_ = nullptr;
};

/// Every process writes a file: rank 2 "trace.rank2.json" instead of "trace.json".
std::string activity_file(const std::string& file, std::optional<int> rank);

/// InputError if --activity conflicts with other flags.
void check_activity(const RunFlags& flags);

/// In the Trace Event Format (Google, 2016) of Perfetto and Chrome: one track per stream of a
/// device, with step and task name in each event.
std::string activity_trace(std::span<const DeviceActivity> activities, const TaskGraph& graph);

}  // namespace meshwright
