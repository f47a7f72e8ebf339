/// Opens any supported file; recognizes the type by name and content.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/cost/calibration.hpp"
#include "core/formats/plan.hpp"
#include "core/formats/schedule_csv.hpp"
#include "gui/timeline/tracks.hpp"
#include "models/load/load.hpp"

namespace meshwright::gui {

struct OpenedModel {
  NamedText text;
};
struct OpenedCluster {
  NamedText text;
};
/// An ONNX file, read when it is planned.
struct OpenedGraph {
  NamedText text;
};
/// Two timelines that are not ranks of one run, to be compared: their paths.
struct OpenedPair {
  std::string first, second;
};
using OpenedContent =
    std::variant<PlanFile, std::shared_ptr<const TimelineTracks>, Calibration, ImportedSchedule,
                 OpenedModel, OpenedCluster, OpenedGraph, OpenedPair>;

struct OpenedFile {
  std::string path;  ///< the first one of several traces
  OpenedContent content;
};

/// Runs in a job. Several paths must be the traces of the ranks of one run, as must be the files of
/// a folder; two other traces become an OpenedPair. Models and clusters are validated. Throws
/// InputError with file and location, also for unrecognized formats. `progress` may throw to stop.
OpenedFile open_files(const std::vector<std::string>& paths,
                      const std::function<void(std::int64_t done, std::int64_t of)>& progress = {});

/// File name patterns for the open dialog: "*.plan.json *.pftrace …".
std::string openable_patterns();

}  // namespace meshwright::gui
