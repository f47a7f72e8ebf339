/// Two timelines that are compared step by step, and how they are read.
#pragma once

#include <QString>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/timeline/compare.hpp"
#include "gui/session/simulation.hpp"
#include "gui/timeline/comparison.hpp"
#include "gui/timeline/steps.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Two timelines, and the result of matching their tasks; only `run` of a trace shown alone.
struct OpenedComparison {
  std::shared_ptr<const TimelineTracks> run;                  ///< all steps of the measured trace
  std::vector<TraceStep> steps;                               ///< of `run`
  std::size_t step = 0;                                       ///< the one that is compared
  std::shared_ptr<const TimelineTracks> predicted, measured;  ///< of one step each
  std::shared_ptr<const TimelineComparison> pairs;
  std::optional<ValidationReport> report;
  QString problem;            ///< error message; empty if there is a report
  std::string measured_path;  ///< for another comparison later; empty if not read from a file
};

/// Reads two traces, in either order if their origin tells which one is measured. Tasks that cannot
/// be matched are a `problem`. Throws InputError.
OpenedComparison compare_files(const std::string& predicted, const std::string& measured);
/// `run` was read from the file `path`.
OpenedComparison compare_with(const Simulation& simulation,
                              const std::shared_ptr<const TimelineTracks>& run,
                              const std::string& path);

/// Sets the measured step.
void choose_step(OpenedComparison& opened, std::size_t step);

}  // namespace meshwright::gui
