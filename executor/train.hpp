/// Carries a plan out: real training on ranks of any kind, and what was measured.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cost_model.hpp"
#include "core/timeline_of.hpp"
#include "executor/checkpoint.hpp"
#include "executor/fault_injection.hpp"
#include "executor/launch.hpp"
#include "executor/nccl.hpp"
#include "executor/rank_clock.hpp"
#include "executor/timed_actions.hpp"
#include "executor/training_options.hpp"
#include "kernels/device.hpp"
#include "kernels/device_activity.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// One training step as it was measured.
struct MeasuredStep {
  double loss = 0;  ///< mean over the tokens of the global batch
  /// By task of the graph. Where it covers all steps, the last one has the times of all of them,
  /// the others have none.
  TaskTimes times;
  Ticks duration;  ///< from its start, or the end of the step before it, to its last end
};

/// A step that came to no end.
struct UnfinishedStep {
  TaskTimes times;
  std::vector<bool> is_done;  ///< by task of the graph; others have no times
};

struct TrainingRun {
  std::vector<MeasuredStep> steps;  ///< those that all ranks came through
  std::optional<UnfinishedStep> unfinished;
  /// Parameters at the end, whole and in fp32, by name; asked for by `keep_parameters`.
  std::map<std::string, std::vector<float>> parameters;
  std::vector<MemoryAmounts> peak_memory;  ///< by rank: counted, without reserved memory
  /// The run ended early. If the rank is stuck, a thread still uses what the request refers to: it
  /// has to stay where it is until the process ends.
  std::optional<RankFailure> failure;
};

struct TrainingRequest {
  const Plan& plan;
  const ModelGraph& model;
  const TaskGraph& graph;  ///< of all ranks, and of all steps if the schedule has no flush
  const CostModel& cost_model;
  const TokenText& text;
  const KernelTable& kernels;
  /// Whose memory the kernels take; null: that of the host.
  const DeviceTable* device = nullptr;
  /// Ranks have a device each, which is number nccl_device, and meet by NCCL; null: they share one,
  /// as threads. Goes with the wall clock.
  const NcclTable* nccl = nullptr;
  int nccl_device = 0;
  /// Told of every task that ranks carry out on a device by the wall clock and with real links.
  const ActivityTable* recorder = nullptr;
  TimelineClock clock = TimelineClock::kVirtual;
  int steps = 1;
  TrainingOptions options = {};
  bool keep_parameters = false;
  CheckpointOptions checkpoints = {};
  RankKind ranks = RankKind::kThreads;
  LaunchOptions launch = {};         ///< `on_report` is set by train()
  LinkTime links = LinkTime::kReal;  ///< under the wall clock
  std::optional<Fault> fault = {};   ///< to try what happens
  /// Called for each step that all ranks have come through, one call at a time, on any thread of
  /// the process that puts the run together: under MPI that of rank 0.
  std::function<void(int step, const MeasuredStep&)> progress = {};
  /// Called with what the kernels of a rank that is a thread took in all steps but the first, when
  /// it ends; one call at a time.
  std::function<void(std::vector<TimedKernels>)> kernel_times = {};
};

/// What cannot be carried out, with values and a way out; empty: train() may be called.
std::vector<Diagnostic> check_runnable(const Plan& plan, const ModelGraph& model);

TrainingRun train(const TrainingRequest& request);

}  // namespace meshwright
