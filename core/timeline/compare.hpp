/// Compares a predicted with a measured timeline of the same plan, joined on stable task names.
///
/// A timeline may hold several consecutive training steps (timeline_steps.hpp). Task times are the
/// median over the measured steps; step time and attribution come from the step of median length.
/// If there are several steps, the first is discarded as warm-up. Errors are relative to the
/// measurement: -10 % means the prediction is 10 % too fast.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/timeline/timeline.hpp"

namespace meshwright {

/// predicted / measured - 1; empty if `measured` is zero.
std::optional<double> relative_error(Ticks predicted, Ticks measured);
std::optional<double> relative_error(Bytes predicted, Bytes measured);

/// Totals for all tasks of one kind, stage or stream.
struct ComparedTasks {
  std::string name;  ///< "F", "stage 2", "send-next"
  std::int64_t tasks = 0;
  Ticks predicted, measured;  ///< sums of durations; measured: sum of medians
  double mean_error = 0;      ///< mean absolute error of the tasks
  friend bool operator==(const ComparedTasks&, const ComparedTasks&) = default;
};

struct ComparedTask {
  std::string name;
  Ticks predicted, measured;
  friend bool operator==(const ComparedTask&, const ComparedTask&) = default;
};

/// Peak memory of one rank, without reserved memory, which the executor does not measure.
struct ComparedMemory {
  RankId rank;
  Bytes predicted, measured;
  friend bool operator==(const ComparedMemory&, const ComparedMemory&) = default;
};

/// Why the measured step is longer than the predicted one (negative: shorter), on the rank that
/// finished last. The parts add up to measured - predicted exactly:
///   compute        compute tasks took longer
///   communication  the compute stream was idle longer while messages or collectives of the rank
///                  were in flight
///   waiting        the compute stream was idle longer for other reasons: other ranks, skew
struct StepAttribution {
  RankId rank;
  Ticks compute, communication, waiting;
  friend bool operator==(const StepAttribution&, const StepAttribution&) = default;
};

struct ValidationReport {
  Ticks predicted_step, measured_step;
  Ticks measured_spread;            ///< interquartile range of the measured steps
  int counted_steps = 1;            ///< measured steps without warm-up
  std::int64_t matched = 0;         ///< tasks present in both timelines
  std::int64_t ranks_left_out = 0;  ///< measured ranks that are not in the prediction
  std::vector<ComparedTasks> by_kind, by_stage, by_stream;
  std::vector<ComparedTask> worst;  ///< largest time differences first, at most kWorstTasks
  std::vector<ComparedMemory> memory;
  StepAttribution attribution;
};
inline constexpr std::size_t kWorstTasks = 10;

Ticks total(const StepAttribution& attribution);
std::optional<double> step_error(const ValidationReport& report);
/// Largest absolute error over the ranks; empty unless both timelines have memory samples.
std::optional<double> peak_memory_error(const ValidationReport& report);

struct CompareInput {
  const Timeline& timeline;
  std::string where;  ///< file name for error messages
};
/// Throws InputError if a timeline has no tasks, if the two are given in the wrong order, or if
/// they belong to different plans (with the number of common tasks and one missing task).
ValidationReport compare(const CompareInput& predicted, const CompareInput& measured);

}  // namespace meshwright
