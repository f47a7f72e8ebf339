#include "cli/run/activity_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run/run_device.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "core/formats/file.hpp"
#include "executor/tasks/device_spans.hpp"

namespace meshwright {

void check_activity(const RunFlags& flags) {
  if (flags.activity.empty()) return;
  if (!is_gpu(flags.device) || flags.clock != "wall" || flags.links == "modelled")
    throw InputError(Diagnostic{
        "--activity",
        fmt::format("requires '--device {} --clock wall' with the default --links", gpu_names()),
        fmt::format("add --device {} --clock wall, and remove --links", gpu_names())});
}

std::string activity_file(const std::string& file, std::optional<int> rank) {
  if (!rank) return file;
  const std::filesystem::path path(file);
  const std::string name =
      fmt::format("{}.rank{}{}", path.stem().string(), *rank, path.extension().string());
  return (path.parent_path() / name).string();
}

ActivityRecording::ActivityRecording(const RunFlags& flags) : flags_(flags) {
  if (flags.activity.empty()) return;
  const ActivityTable* table = activity_table_of(flags.device);
  const std::string missing =
      table == nullptr ? "the GPU plug-in was built without CUPTI" : table->start();
  if (missing.empty())
    recorder_ = table;
  else
    print_to_stderr(fmt::format("warning: --activity: not recording: {}\n", missing));
}

ActivityRecording::~ActivityRecording() {
  if (recorder_ != nullptr) static_cast<void>(recorder_->stop());
}

void ActivityRecording::write(const TaskGraph& graph, std::optional<int> rank) {
  if (recorder_ == nullptr) return;
  const std::vector<DeviceActivity> activities = recorder_->stop();
  recorder_ = nullptr;
  write_file(activity_file(flags_.activity, rank), activity_trace(activities, graph));
}

std::string activity_trace(std::span<const DeviceActivity> activities, const TaskGraph& graph) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  const std::int64_t zero = activities.empty() ? 0 : activities.front().start;
  constexpr double kNanosecondsPerUnit = 1e3;  // the unit of the format is a microsecond
  const auto time = [&](std::int64_t at) { return static_cast<double>(at) / kNanosecondsPerUnit; };
  for (const DeviceActivity& activity : activities) {
    nlohmann::ordered_json event{
        {"name", activity.name.empty() ? fmt::format("copy of {} bytes", activity.bytes.value)
                                       : activity.name},
        {"ph", "X"},
        {"ts", time(activity.start - zero)},
        {"dur", time(activity.end - activity.start)},
        {"pid", activity.device},
        {"tid", activity.stream}};
    const TaskId task = task_of_activity(activity.task);
    if (activity.task != 0 && task.index() < graph.tasks.size())
      event["args"] = {{"task", stable_name(graph, task)}, {"step", activity.task >> 32U}};
    events.push_back(std::move(event));
  }
  return nlohmann::ordered_json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(
             1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace meshwright
