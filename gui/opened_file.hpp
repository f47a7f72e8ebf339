/// Any file that the program opens, recognised by what stands in it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/calibration.hpp"
#include "core/io_plan.hpp"
#include "core/io_schedule_csv.hpp"
#include "gui/timeline_tracks.hpp"
#include "models/load.hpp"

namespace meshwright::gui {

struct OpenedModel {
  NamedText text;
};
struct OpenedCluster {
  NamedText text;
};
using OpenedContent = std::variant<PlanFile, std::shared_ptr<const TimelineTracks>, Calibration,
                                   ImportedSchedule, OpenedModel, OpenedCluster>;

struct OpenedFile {
  std::string path;  ///< of several traces the first
  OpenedContent content;
};

/// For jobs. Several paths must be traces, the ranks of one run. Models and clusters are read to
/// see that they are sound. InputError names file and place, also for files of no kind that is
/// known. `progress` may throw to stop.
OpenedFile open_files(const std::vector<std::string>& paths,
                      const std::function<void(std::int64_t done, std::int64_t of)>& progress = {});

/// Patterns of the open dialog: "*.plan.json *.pftrace …".
std::string openable_patterns();

}  // namespace meshwright::gui
