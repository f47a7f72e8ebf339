/// What `run` reports of every step while it goes on.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cli/run/run_log.hpp"
#include "cli/run/run_results.hpp"
#include "cli/run/tensorboard_log.hpp"
#include "executor/runs/measured_timeline.hpp"

namespace meshwright {

/// "3:07" or "1:02:09", rounded up to a second.
std::string clock_text(std::chrono::duration<double> time);

/// "  validation loss 3.1416"; empty: not computed after this step.
std::string validation_text(const MeasuredStep& step);

/// Prints every step, on a terminal as a line that is rewritten; writes --log and
/// --tensorboard; with --live, also
/// the timeline measured so far.
class RunProgress {
 public:
  /// Must outlive it.
  struct Run {
    const Job& job;
    const RunFlags& flags;
    const TaskGraph& graph;
    TrainingLength length;
  };
  /// Processes that do not report must not touch the files of the one that does.
  RunProgress(const Run& run, bool reports);
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;
  ~RunProgress();
  void report(int step, const MeasuredStep& measured);

 private:
  using Clock = std::chrono::steady_clock;
  void write_so_far();
  std::string terminal_line(int step, const MeasuredStep& measured) const;

  Run run_;
  bool reports_;
  StepRates rates_;
  std::optional<RunLog> log_;
  std::optional<TensorBoardLog> tensorboard_;
  TrainingRun so_far_;        ///< with --live
  MedianTimes median_times_;  ///< of so_far_
  bool has_warned_ = false;
  bool is_terminal_;
  bool is_line_open_ = false;
  Clock::time_point begin_ = Clock::now(), next_write_ = begin_;
};

}  // namespace meshwright
