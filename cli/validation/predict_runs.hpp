/// Predictions for published runs, as `validate` compares them with their measured values.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/trainer/trainer.hpp"
#include "models/load/published_runs.hpp"
#include "simulator/fit/error_bars.hpp"

namespace meshwright {

/// Published runs with their models and clusters, each distinct text loaded once.
struct LoadedRuns {
  struct Job {
    const PublishedSet* set = nullptr;
    const PublishedRun* run = nullptr;
    std::size_t model = 0, cluster = 0;  ///< in the vectors below
  };
  std::vector<PublishedSet> sets;
  std::vector<ModelGraph> models;
  std::vector<Cluster> clusters;
  std::vector<Job> jobs;  ///< in the order of `sets` and their runs; they point into `sets`

  LoadedRuns() = default;
  LoadedRuns(LoadedRuns&&) = default;
  LoadedRuns& operator=(LoadedRuns&&) = default;
};
/// InputError if a model or cluster is invalid.
LoadedRuns load_runs(std::vector<PublishedSet> sets);

/// What one prediction gives. Times and shares as in core/timeline/evaluation.hpp.
struct RunPrediction {
  std::vector<Diagnostic> problems;  ///< why the run cannot be simulated; then the rest is empty
  Seconds step_time;
  Bytes allocated, reserved, device;  ///< peak memory as MeasuredMemory counts it
  bool fits_in_memory = true;
  double mfu = 0, bubble_of_period = 0;
  StepShares shares;
  std::string device_name;
  JobTraits traits;
  friend bool operator==(const RunPrediction&, const RunPrediction&) = default;
};
/// The predicted figure that a measured one of this kind is compared with.
Bytes memory_of(const RunPrediction& prediction, MeasuredMemory kind);

/// What predictions depend on besides the files. The defaults are those of `simulate`; fits and
/// what-if experiments replace them.
struct PredictionOptions {
  int threads = 0;  ///< 0: all cores. The result does not depend on it.
  /// Change the figures of a device or trainer before runs are predicted; called once per distinct
  /// cluster and trainer.
  std::function<void(DeviceModel& device)> change_device = {};
  std::function<void(Trainer& trainer)> change_trainer = {};
  /// Jobs to leave out, by index in LoadedRuns::jobs; their predictions stay empty.
  std::function<bool(std::size_t job)> skips = {};
  std::function<bool()> canceled = {};  ///< called from any of the threads
};

/// One prediction per job, in the same order.
std::vector<RunPrediction> predict_runs(const LoadedRuns& runs,
                                        const PredictionOptions& options = {});

/// The plan of a run: its blocks per stage as published, else the program's choice. InputError with
/// the positions of the run's keys if it cannot be simulated.
Plan plan_of_run(const PublishedRun& run, const ModelGraph& model, const Cluster& cluster,
                 const CostModel& cost_model);

}  // namespace meshwright
