/// What `run` says about what it measured.
#pragma once

#include <string>

#include "cli/commands.hpp"
#include "executor/train.hpp"

namespace meshwright {

inline constexpr int kDefaultSteps = 5;

/// Step times, the first step left out unless it is the only one: caches and memory are new to it.
struct StepSpread {
  Ticks least, first_quartile, median, third_quartile;
  std::size_t median_step = 0;  ///< in TrainingRun::steps
  std::size_t count = 0;
};
/// Of at least one step.
StepSpread spread_of(const TrainingRun& run);
Ticks step_time(const MeasuredStep& step);

/// Measured steps, and what they were measured with.
struct RunResults {
  const Job& job;
  const RunFlags& flags;
  const TaskGraph& graph;
  const TrainingRun& run;
};
std::string results_text(const RunResults& results);
std::string results_json(const RunResults& results);
/// The timeline of the median step, or of all, as a Perfetto trace, with counted peaks of memory;
/// of a run that was interrupted in its first step, what that came to.
std::string results_trace(const RunResults& results);

}  // namespace meshwright
