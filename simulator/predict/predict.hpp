/// predict(): the step time and memory of a plan. The only place where a plan is lowered, priced,
/// simulated and evaluated.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "simulator/fit/error_bars.hpp"
#include "simulator/variation/what_if.hpp"

namespace meshwright {

/// A plan, with all that its prediction depends on. Refers to its parts.
struct TrainingJob {
  const Plan& plan;
  const ModelGraph& model;
  const Cluster& cluster;
  const CostModel& cost_model;  ///< times, and the memory of the training program
  RankSet ranks = RankSet::kRepresentatives;
  int steps = 0;            ///< as LoweringOptions::steps
  bool contention = false;  ///< on shared links; requires RankSet::kAll
  WhatIf what_if = {};      ///< replaces prices
  /// With both: the prediction has the error bar of published runs that resemble the job.
  const Trainer* trainer = nullptr;
  std::span<const ValidatedRun> validated_runs = {};
  std::function<void()> checkpoint = {};  ///< called between the parts; may throw to cancel
};

struct SimulatedStep {
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  SimulatedTimes times;
};
/// predict() without the evaluation. InputError if the plan is invalid.
SimulatedStep simulate_step(const TrainingJob& job);

struct Prediction : SimulatedStep {
  Evaluation evaluation;
  std::optional<ErrorBar> error_bar;  ///< absent: unvalidated
};
Prediction predict(const TrainingJob& job);

/// Peak rate and memory are minima over the devices of the job (devices 0, 1, …).
JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster);

}  // namespace meshwright
