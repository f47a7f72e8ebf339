#include "gui/session/opened_file.hpp"

#include <algorithm>
#include <filesystem>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"
#include "gui/timeline/trace_files.hpp"
#include "models/load/load.hpp"
#include "models/onnx/onnx.hpp"

namespace meshwright::gui {
namespace {

enum class FileKind { kPlan, kTrace, kCalibration, kSchedule, kModel, kCluster, kGraph, kUnknown };

bool ends_with(const std::string& path, std::string_view suffix) {
  return path.size() >= suffix.size() && std::string_view(path).ends_with(suffix);
}

/// Traces are large and may be compressed, so they are
/// recognized by name. All other files are small texts.
bool is_trace_name(const std::string& path) {
  for (const std::string_view suffix :
       {".pftrace", ".perfetto-trace", ".gz", ".trace.json", ".pt.trace.json", ".trace"})
    if (ends_with(path, suffix)) return true;
  return false;
}

FileKind kind_of_json(std::string_view text) {
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  if (has("\"traceEvents\"")) return FileKind::kTrace;
  if (has("\"strategy\"") && has("\"schema\"")) return FileKind::kPlan;
  if (has("\"collectives\"") || has("\"provenance\"")) return FileKind::kCalibration;
  if (has("\"model_type\"") || has("\"architectures\"")) return FileKind::kModel;
  if (has("\"ph\"")) return FileKind::kTrace;  // a bare array of events
  return FileKind::kUnknown;
}

FileKind kind_of_text(const std::string& path, std::string_view text) {
  if (ends_with(path, ".onnx")) return FileKind::kGraph;
  if (ends_with(path, ".csv")) return FileKind::kSchedule;
  if (ends_with(path, ".toml")) return FileKind::kCluster;
  if (ends_with(path, ".plan.json")) return FileKind::kPlan;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return FileKind::kUnknown;
  if (text[first] == '{' || text[first] == '[') return kind_of_json(text);
  if (ends_with(path, ".json")) return FileKind::kModel;  // its reader reports the error
  return FileKind::kUnknown;
}

std::string stem_of(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  for (const std::string_view suffix :
       {".config.json", ".plan.json", ".json", ".toml", ".csv", ".onnx"})
    if (ends_with(name, suffix)) return name.substr(0, name.size() - suffix.size());
  return name;
}

ImportedSchedule read_schedule(const std::string& path, const std::string& text) {
  ImportedSchedule read = read_schedule_csv(text, stem_of(path), path);
  std::vector<Diagnostic> faults;
  for (std::string& fault : check_schedule(read.schedule))
    faults.push_back({path, std::move(fault), ""});
  if (!faults.empty()) throw InputError(std::move(faults));
  return read;
}

OpenedContent read_content(const std::string& path, const std::string& text,
                           const TraceFileProgress& progress) {
  const NamedText named{stem_of(path), path, text};
  switch (kind_of_text(path, text)) {
    case FileKind::kPlan: {
      PlanFile file = plan_file_from_json(text, path);
      (void)model_from_config({file.model_name, path + "#/model/config", file.model_config});
      (void)cluster_from_toml({file.cluster_name, path + "#/cluster/toml", file.cluster_toml});
      return file;
    }
    case FileKind::kTrace:
      return std::make_shared<const TimelineTracks>(tracks_of_trace(text, path, progress));
    case FileKind::kCalibration:
      return calibration_from_json(text, path);
    case FileKind::kSchedule:
      return read_schedule(path, text);
    case FileKind::kModel:
      (void)model_from_config(named);
      return OpenedModel{named};
    case FileKind::kCluster:
      (void)cluster_from_toml(named);
      return OpenedCluster{named};
    case FileKind::kGraph:
      (void)symbolic_dimensions(named);
      return OpenedGraph{named};
    case FileKind::kUnknown:
      break;
  }
  throw InputError(Diagnostic{path, "unrecognized format",
                              "open a plan, trace, calibration, schedule (CSV), model (config.json "
                              "or ONNX) or cluster (TOML)"});
}

}  // namespace

namespace {

/// The traces in a folder, by name: one file per rank.
std::vector<std::string> traces_in(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() &&
        (is_trace_name(entry.path().string()) || entry.path().extension() == ".json"))
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (paths.empty())
    throw InputError(Diagnostic{folder, "no traces in this folder",
                                "open a folder with one Kineto file (.json or .json.gz) per rank"});
  return paths;
}

bool contains_all_ranks(const std::string& path) {
  return ends_with(path, ".pftrace") || ends_with(path, ".perfetto-trace");
}

OpenedContent read_traces(const std::vector<std::string>& paths,
                          const TraceFileProgress& progress) {
  const auto read = [&] {
    return std::make_shared<const TimelineTracks>(read_trace_files(paths, progress));
  };
  if (paths.size() != 2) return read();
  const OpenedPair pair{paths[0], paths[1]};
  if (contains_all_ranks(paths[0]) || contains_all_ranks(paths[1])) return pair;
  try {
    return read();
  } catch (const InputError&) {
    return pair;  // the comparison reports files that cannot be read
  }
}

}  // namespace

OpenedFile open_files(const std::vector<std::string>& paths,
                      const std::function<void(std::int64_t done, std::int64_t of)>& progress) {
  if (paths.size() == 1 && std::filesystem::is_directory(paths.front()))
    return {paths.front(), read_traces(traces_in(paths.front()), {.report = progress})};
  const bool are_traces =
      paths.size() > 1 || std::any_of(paths.begin(), paths.end(), is_trace_name);
  if (are_traces) return {paths.front(), read_traces(paths, {.report = progress})};
  const std::string text = read_file(paths.front(), kLargestTraceFile);
  return {paths.front(), read_content(paths.front(), text, {.report = progress})};
}

std::string openable_patterns() {
  return "*.json *.pftrace *.perfetto-trace *.gz *.csv *.toml *.trace *.onnx";
}

}  // namespace meshwright::gui
