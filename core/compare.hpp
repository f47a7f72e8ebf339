/// Prediction against measurement: two timelines of one plan, joined by the names of their tasks.
///
/// A timeline may hold several training steps one after another (timeline_steps.hpp). Tasks are
/// compared by their median over the measured steps that count, the first one of several left out
/// as warm-up; the step and what became of it by the step of median length. Errors are relative to
/// what was measured: -10 % is a prediction that is a tenth too fast.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "core/units.hpp"

namespace meshwright {

/// predicted / measured - 1; nothing where nothing was measured.
std::optional<double> relative_error(Ticks predicted, Ticks measured);
std::optional<double> relative_error(Bytes predicted, Bytes measured);

/// Tasks of one kind, stage or stream together.
struct ComparedTasks {
  std::string name;  ///< "F", "stage 2", "send-next"
  std::int64_t tasks = 0;
  Ticks predicted, measured;  ///< sums of durations; measured: of medians
  double mean_error = 0;      ///< mean size of the tasks' errors
  friend bool operator==(const ComparedTasks&, const ComparedTasks&) = default;
};

struct ComparedTask {
  std::string name;
  Ticks predicted, measured;
  friend bool operator==(const ComparedTask&, const ComparedTask&) = default;
};

/// Peak of one rank, reserved memory left out: nobody counts it.
struct ComparedMemory {
  RankId rank;
  Bytes predicted, measured;
  friend bool operator==(const ComparedMemory&, const ComparedMemory&) = default;
};

/// Why the measured step is longer than the predicted one (negative: shorter), on the rank that
/// finished last. The parts add up to measured - predicted exactly:
///   compute        its tasks took longer
///   communication  its compute stream stood still longer while messages or collectives of the rank
///                  were under way
///   waiting        it stood still longer for other reasons: other ranks, skew between them
struct StepAttribution {
  RankId rank;
  Ticks compute, communication, waiting;
  friend bool operator==(const StepAttribution&, const StepAttribution&) = default;
};

struct ValidationReport {
  Ticks predicted_step, measured_step;
  Ticks measured_spread;     ///< upper less lower quartile of the measured steps
  int counted_steps = 1;     ///< measured steps without warm-up
  std::int64_t matched = 0;  ///< tasks in both
  std::int64_t ranks_left_out =
      0;  ///< measured ranks for which the prediction has no lane of its own
  std::vector<ComparedTasks> by_kind, by_stage, by_stream;
  std::vector<ComparedTask> worst;  ///< largest differences in time first, at most kWorstTasks
  std::vector<ComparedMemory> memory;
  StepAttribution attribution;
};
inline constexpr std::size_t kWorstTasks = 10;

Ticks total(const StepAttribution& attribution);
std::optional<double> step_error(const ValidationReport& report);
/// Largest size of a rank's error; nothing without memory in both.
std::optional<double> peak_memory_error(const ValidationReport& report);

struct CompareInput {
  const Timeline& timeline;
  std::string where;  ///< its file, for messages
};
/// InputError: no tasks, origins the wrong way round, tasks of different plans (how many are in
/// both, and which is missing where).
ValidationReport compare(const CompareInput& predicted, const CompareInput& measured);

}  // namespace meshwright
