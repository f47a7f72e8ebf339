/// Carries a plan out: real training on ranks that are threads, and what was measured.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cost_model.hpp"
#include "core/timeline_of.hpp"
#include "executor/launch.hpp"
#include "executor/training_options.hpp"
#include "kernels/kernel_table.hpp"

namespace meshwright {

/// One training step as it was measured.
struct MeasuredStep {
  double loss = 0;  ///< mean over the tokens of the global batch
  TaskTimes times;  ///< by task of the graph
};

struct TrainingRun {
  std::vector<MeasuredStep> steps;
  /// Parameters at the end, whole and in fp32, by name; asked for by `keep_parameters`.
  std::map<std::string, std::vector<float>> parameters;
  std::vector<MemoryAmounts> peak_memory;  ///< by rank: counted, without reserved memory
  std::optional<RankFailure> failure;      ///< the run ended early
};

struct TrainingRequest {
  const Plan& plan;
  const ModelGraph& model;
  const TaskGraph& graph;  ///< of all ranks
  const CostModel& cost_model;
  const TokenText& text;
  const KernelTable& kernels;
  TimelineClock clock = TimelineClock::kVirtual;
  int steps = 1;
  TrainingOptions options = {};
  bool keep_parameters = false;
  LaunchOptions launch = {};
  /// Called by rank 0's thread after each step.
  std::function<void(int step, const MeasuredStep&)> progress = {};
};

/// What cannot be carried out, with values and a way out; empty: train() may be called.
std::vector<Diagnostic> check_runnable(const Plan& plan, const ModelGraph& model);

TrainingRun train(const TrainingRequest& request);

/// The model without dropout: what is trained, since masks would have to be equal for every cut.
ModelGraph without_dropout(ModelGraph model);

}  // namespace meshwright
