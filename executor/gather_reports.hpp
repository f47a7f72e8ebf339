/// Steps, memory and parameters of a run, put together from what its ranks report.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "executor/run_report.hpp"
#include "executor/train.hpp"

namespace meshwright {

class GatheredReports {
 public:
  /// The request outlives this.
  explicit GatheredReports(const TrainingRequest& request);
  /// A report of run_report.hpp. Tells the request's progress of each step that all are through.
  void take(RankId rank, std::span<const std::byte> bytes);
  /// What has been reported so far.
  TrainingRun finish(std::optional<RankFailure> failure);

 private:
  struct StepUnderway {
    UnfinishedStep step;
    std::vector<double> losses;  ///< by rank
    Ticks end;                   ///< of its last task
    std::size_t ranks = 0;       ///< that are through
  };

  UnfinishedStep no_times() const;
  StepUnderway& underway(int step);
  void take(RankId rank, const StepReport& report);
  void take(const ParameterValues& values);

  const TrainingRequest& request_;
  std::size_t ranks_;
  bool covers_all_steps_;               ///< the graph does: its schedule has no flush
  UnfinishedStep all_steps_;            ///< where it does
  Ticks end_of_last_;                   ///< of the last step that all came through
  std::vector<StepUnderway> underway_;  ///< the first follows the last of run_.steps
  TrainingRun run_;
};

}  // namespace meshwright
