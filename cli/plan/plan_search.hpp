/// Inputs of `plan`, and one search with its figures.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/job.hpp"
#include "cli/plan/plan_flags.hpp"
#include "core/formats/plan.hpp"
#include "planner/search/search.hpp"
#include "planner/sizing/run_cost.hpp"
#include "planner/sizing/sensitivity.hpp"
#include "planner/sizing/sizing.hpp"
#include "simulator/cost/perturbation.hpp"

namespace meshwright {

struct PlanModel {
  NamedText text;
  ModelGraph graph;
};

/// With what depends on it.
struct PlanCluster {
  NamedText text;
  Cluster cluster;  ///< devices have `memory_margin` less memory
  Bytes memory_margin;
  std::optional<Calibration> calibration;
  Trainer trainer;
  bool is_trainer_named = false;  ///< then searches are restricted to what it can run
  std::unique_ptr<CostModel> cost_model;
};

PlanModel load_plan_model(const std::string& name);
/// `margin`: of device memory, to leave free; UsageError if a device has no more.
PlanCluster load_plan_cluster(const std::string& name, const SourceFlags& sources, Bytes margin);
/// Seconds since the call of this function.
std::function<Seconds()> start_clock();
/// nullopt: no limit.
std::optional<Seconds> time_limit_of(const PlanFlags& flags);

/// The best plan that a training program can run, with its costs.
struct BestOfTrainer {
  std::string trainer;
  std::optional<RankedPlan> plan = {};
  std::optional<PlanFigures> figures = {};  ///< of `plan`
  bool proved_optimal = false;
  std::string problem = {};  ///< why there are no figures
};

struct PerturbedSearch {
  Perturbation perturbation;
  SensitivityCase result;
};

/// --sensitivity: whether plan 1 stays the fastest.
struct PlanSensitivity {
  std::vector<PerturbedSearch> hardware;
  std::vector<RangeCase> ranges;  ///< among the listed plans; empty: unvalidated
};

/// Refers to model and cluster.
struct PlanSearch {
  const PlanModel* model = nullptr;
  const PlanCluster* cluster = nullptr;
  Goal goal;
  SearchResult result;
  std::vector<PlanFigures> figures;           ///< of result.plans
  std::vector<std::optional<RunCost>> costs;  ///< of result.plans; empty without --tokens
  std::string validation;                     ///< of the first plan
  Seconds time;
  std::vector<BestOfTrainer> trainers;              ///< see trainer_comparison.hpp
  std::optional<PlanSensitivity> sensitivity;       ///< see sensitivity_report.hpp
  std::optional<FewestDevices> fewest_devices;      ///< --gpus auto
  std::optional<LongestSequence> longest_sequence;  ///< --seq max
};

/// Arguments of the planner; refers to the same as `search`.
SizingJob sizing_job(const PlanSearch& search, const FixedChoices& choices);

/// Sets figures, costs and validation of the plans that were found.
void set_figures(PlanSearch& search, const std::optional<PlannedRun>& run);

/// Options for several searches: time limit, threads, Ctrl-C, progress on a terminal.
SizingOptions sizing_options(const PlanFlags& flags);

/// One search, after the questions for the fewest devices and the longest sequence.
PlanSearch search_once(const PlanFlags& flags, const PlanRequest& request, const PlanModel& model,
                       const PlanCluster& cluster);

/// The best plan.
PlanFile plan_file_of(const PlanSearch& search);

}  // namespace meshwright
