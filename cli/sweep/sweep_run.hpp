/// From the options of a sweep to its result, wherever the points are evaluated: load_sweep(),
/// take_point() for every missing one, finish_sweep().
#pragma once

#include <vector>

#include "cli/sweep/points_file.hpp"
#include "cli/sweep/sweep_report.hpp"

namespace meshwright {

struct SweepRun {
  SweepStudy study;
  SweepPart part;
  const SweepFigure* figure = nullptr;
  PointsFile points_file;
  std::vector<std::size_t> missing;  ///< to be evaluated, at first
};
/// Prints how many points the points file has.
SweepRun load_sweep(const SweepFlags& flags);
/// Adds an evaluated point to the study and to the points file.
void take_point(SweepRun& run, std::size_t index, SweepPoint point);
/// Writes the results. Throws Interrupted if there are none.
Outcome finish_sweep(SweepRun& run, const SweepFlags& flags);

/// All of it in this process.
Outcome run_sweep_here(const SweepFlags& flags);

}  // namespace meshwright
