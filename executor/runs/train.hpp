/// Runs a plan: real training on ranks of any kind, with measurements.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/timeline/timeline_of.hpp"
#include "executor/checkpoint/checkpoint.hpp"
#include "executor/launch/launch.hpp"
#include "executor/ranks/training_options.hpp"
#include "executor/runs/fault_injection.hpp"
#include "executor/runs/same_run.hpp"
#include "executor/tasks/rank_clock.hpp"
#include "executor/tasks/timed_actions.hpp"
#include "executor/training/validation.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device.hpp"
#include "kernels/device/activity.hpp"
#include "kernels/device/ranges.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// Measurements of one training step.
struct MeasuredStep {
  double loss = 0;  ///< mean over the tokens of the global batch
  /// Over all parameters, before clipping; nullopt if every rank clips by a norm of its own.
  std::optional<double> gradient_norm = {};
  /// Mean over the held-out tokens, with the parameters after the step; nullopt: not computed.
  std::optional<double> validation_loss = {};
  float learning_rate = 0;
  Bytes peak_memory = {};  ///< of the rank that has used most, so far
  /// By task of the graph. If the graph covers all steps, the last step holds the times of all
  /// steps and the others are empty.
  TaskTimes times;
  Ticks duration;  ///< from its start, or the end of the previous step
};

/// A step that did not complete.
struct UnfinishedStep {
  TaskTimes times;
  std::vector<bool> is_done;  ///< by task; only these have times
};

struct TrainingRun {
  std::vector<MeasuredStep> steps;  ///< completed by all ranks
  std::optional<UnfinishedStep> unfinished;
  /// Final parameters, unsharded and in fp32, by name; only with `keep_parameters`.
  std::map<std::string, std::vector<float>> parameters;
  std::vector<MemoryAmounts> peak_memory;  ///< by rank, as allocated; without reserved memory
  /// Set if the run ended early. If the rank is stuck, a thread still uses what the request refers
  /// to, which must then live until the process exits.
  std::optional<RankFailure> failure;
  bool has_saved_last = false;                 ///< interrupted, after the last step had been saved
  std::optional<double> validation_loss = {};  ///< of a run of no steps; else in the steps
};

struct TrainingRequest {
  const Plan& plan;
  const ModelGraph& model;
  /// Of all ranks, with programs (see LoweringOptions) unless it is replayed, and of all steps for
  /// flushless schedules.
  const TaskGraph& graph;
  const CostModel& cost_model;
  const TokenText& text;
  const KernelTable& kernels;
  /// The device whose memory the kernels use; null: the host.
  const DeviceTable* device = nullptr;
  /// If set, each rank has its own device, number nccl_device, and communicates by NCCL (wall clock
  /// only); null: ranks are threads that share one device.
  const NcclTable* nccl = nullptr;
  int nccl_device = 0;
  /// Notified of every task on a device, under the wall clock and with real links.
  const ActivityTable* recorder = nullptr;
  const RangeTable* ranges = nullptr;
  TimelineClock clock = TimelineClock::kVirtual;
  /// 0, not for flushless schedules: only validates and saves the initial state.
  int steps = 1;
  TrainingOptions options = {};
  /// Compared by ranks that are processes of a launcher.
  RunSettings settings = {};
  ValidationOptions validation = {};  ///< not under the replay clock; see check_validation()
  bool keep_parameters = false;
  bool keep_all_times = true;  ///< else only of steps of about median duration
  CheckpointOptions checkpoints = {};
  RankKind ranks = RankKind::kThreads;
  LaunchOptions launch = {};         ///< `on_report` is set by train()
  LinkTime links = LinkTime::kReal;  ///< wall clock only
  std::optional<Fault> fault = {};   ///< injected for testing
  /// Called for each step that all ranks have completed. Calls are serialized and come from any
  /// thread of the process that gathers the reports: under MPI and in jobs that of rank 0.
  std::function<void(int step, const MeasuredStep&)> progress = {};
  /// Called when a rank that is a thread ends, with its kernel times in all steps but the first.
  /// Calls are serialized.
  std::function<void(std::vector<TimedKernels>)> kernel_times = {};
};

/// Reasons why the plan cannot be run, with hints; empty: train() may be called.
std::vector<Diagnostic> check_runnable(const Plan& plan, const ModelGraph& model);

/// The same for validation.
std::vector<Diagnostic> check_validation(const Strategy& strategy);

TrainingRun train(const TrainingRequest& request);

}  // namespace meshwright
