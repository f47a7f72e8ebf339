/// Results of `run` as text, JSON and timeline.
#pragma once

#include <string>

#include "cli/run/run_flags.hpp"
#include "cli/run/run_input.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {

/// Step times without the first step, which warms up, unless it is the only one.
struct StepSpread {
  Ticks least, first_quartile, median, third_quartile;
  std::size_t median_step = 0;  ///< in TrainingRun::steps
  std::size_t count = 0;
};
/// Requires at least one step.
StepSpread spread_of(const TrainingRun& run);
Ticks step_time(const MeasuredStep& step);

/// Measured steps and their configuration.
struct RunResults {
  const Job& job;
  const RunFlags& flags;
  const TaskGraph& graph;
  const TrainingRun& run;
  TrainingLength length;
};
std::string results_text(const RunResults& results);
std::string results_json(const RunResults& results);
/// The timeline of the median step, or of all steps, as a Perfetto trace with measured peak memory.
/// If the run was interrupted in its first step: the finished tasks of that step.
std::string results_trace(const RunResults& results);

}  // namespace meshwright
