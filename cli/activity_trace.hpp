/// Kernels and copies of a GPU as a trace of their own: `run --activity FILE`.
#pragma once

#include <span>
#include <string>

#include "cli/commands.hpp"
#include "core/task_graph.hpp"
#include "kernels/device_activity.hpp"

namespace meshwright {

/// While it lives, the GPU's activity is recorded, if --activity asks for that and it can be. Where
/// it cannot, one line says why, and the run goes on.
class ActivityRecording {
 public:
  explicit ActivityRecording(const RunFlags& flags);
  ActivityRecording(const ActivityRecording&) = delete;
  ActivityRecording& operator=(const ActivityRecording&) = delete;
  ~ActivityRecording();
  /// Who is to be told of tasks; null: nobody.
  const ActivityTable* recorder() const { return recorder_; }
  /// Ends it, and writes the file that was asked for.
  void write(const TaskGraph& graph);

 private:
  const RunFlags& flags_;
  const ActivityTable* recorder_ = nullptr;
};

/// Throws InputError where --activity does not go with the other flags.
void check_activity(const RunFlags& flags);

/// In the Trace Event Format (Google, 2016), which Perfetto and Chrome open: a track for each
/// stream of a device; each event with its step and the name of its task.
std::string activity_trace(std::span<const DeviceActivity> activities, const TaskGraph& graph);

}  // namespace meshwright
