/// Assembles steps, memory and parameters of a run from the reports of its ranks.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "executor/runs/measured_timeline.hpp"
#include "executor/runs/train.hpp"
#include "executor/training/run_report.hpp"

namespace meshwright {

class GatheredReports {
 public:
  /// The request must outlive it.
  explicit GatheredReports(const TrainingRequest& request);
  /// Takes a report of run_report.hpp and calls the request's progress() for each step that all
  /// ranks have completed.
  void take(RankId rank, std::span<const std::byte> bytes);
  /// The run as reported so far.
  TrainingRun finish(std::optional<RankFailure> failure);

 private:
  struct StepUnderway {
    UnfinishedStep step;
    std::vector<double> losses;  ///< by rank
    std::optional<double> gradient_norm, validation_loss;
    Bytes peak_memory;      ///< largest
    Ticks end;              ///< end of its last task
    std::size_t ranks = 0;  ///< ranks that completed the step
  };

  UnfinishedStep no_times() const;
  StepUnderway& underway(int step);
  void take(RankId rank, const StepReport& report);
  void take(const ParameterValues& values);
  float learning_rate_of(int step) const;

  const TrainingRequest& request_;
  std::size_t ranks_;
  bool covers_all_steps_;               ///< the graph does: flushless schedule
  UnfinishedStep all_steps_;            ///< used if covers_all_steps_
  Ticks end_of_last_;                   ///< end of the last step that all ranks completed
  std::vector<StepUnderway> underway_;  ///< starting with the step after run_.steps
  TrainingRun run_;
  MedianTimes median_times_;  ///< of run_
};

}  // namespace meshwright
