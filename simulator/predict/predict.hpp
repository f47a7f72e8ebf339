/// predict(): the step time and memory of a plan. Here a plan is lowered, priced, simulated and
/// evaluated, with two exceptions: the search (planner/search/search.cpp) stops after the makespan
/// of a candidate or its memory shortfall, and link_uses() prices nothing.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cluster/link_network.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "simulator/fit/error_bars.hpp"
#include "simulator/variation/all_ranks.hpp"
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
struct EvaluatedStep {
  Evaluation evaluation;
  std::optional<ErrorBar> error_bar;  ///< absent: unvalidated
};
struct Prediction : SimulatedStep, EvaluatedStep {};

/// simulate_step(), then evaluate_step(). InputError if the plan is invalid.
Prediction predict(const TrainingJob& job);
SimulatedStep simulate_step(const TrainingJob& job);
EvaluatedStep evaluate_step(const TrainingJob& job, const SimulatedStep& step);

/// All ranks of a job, to be simulated with stragglers or shared links.
struct PricedReplicas {
  ReplicatedGraph all;
  std::vector<WorkPrice> prices;
  std::optional<LinkNetwork> network;  ///< with TrainingJob::contention
  const LinkNetwork* shared() const { return network ? &*network : nullptr; }
};
/// InputError if the plan is invalid. TrainingJob::ranks does not matter.
PricedReplicas price_replicas(const TrainingJob& job);
/// As predict() of all ranks, whose equal replicas have one representative in the graph.
Prediction predict(const TrainingJob& job, const PricedReplicas& priced,
                   const SimulatedReplicas& simulated);
/// The graph of all ranks with their times.
SimulatedStep step_of_all_ranks(const PricedReplicas& priced, const SimulatedReplicas& simulated);

/// The peak rate is the mean over the devices of the job (devices 0, 1, …).
JobFacts job_facts(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster);

/// The links between all ranks of a job, separate parameter servers included.
LinkNetwork network_of(std::span<const RankInfo> ranks, const Strategy& strategy,
                       const Cluster& cluster);

}  // namespace meshwright
