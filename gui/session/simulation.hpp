/// Simulation of a Scenario: lowering, cost model, simulation, timeline tracks. Pure functions that
/// run in jobs; results are shared and immutable.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/formats/plan.hpp"
#include "core/model/model_graph.hpp"
#include "core/schedule/bubble_formula.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/trainer/trainer.hpp"
#include "gui/session/scenario.hpp"
#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright::gui {

/// The parsed inputs of a scenario.
struct LoadedJob {
  ModelGraph model;
  Cluster cluster;
  Trainer trainer;
  std::string calibration;  ///< file content; empty for none
  std::unique_ptr<CostModel> cost_model;
};

/// Caches the last few loaded jobs, so that moving a
/// slider does not parse files again. Thread-safe.
class JobLibrary {
 public:
  /// Throws InputError.
  std::shared_ptr<const LoadedJob> load(const Scenario& scenario);

 private:
  struct Entry {
    NamedText model, cluster;
    std::string calibration_file;
    std::shared_ptr<const LoadedJob> job;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  ///< oldest first
};

/// Lower bounds over all orders of the same passes; see route_bound().
struct PipelineBounds {
  Ticks makespan, period;
  friend bool operator==(const PipelineBounds&, const PipelineBounds&) = default;
};

struct Simulation {
  Scenario scenario;
  /// Problems of the scenario. If there are any, all other
  /// fields are empty, except `job` if it could be loaded.
  std::vector<Diagnostic> problems;
  std::shared_ptr<const LoadedJob> job;
  Plan plan;
  Schedule schedule;
  SimulatedStep step;
  Evaluation evaluation;
  PlanFigures figures;
  /// Pass times per stage (nullopt if passes are split),
  /// and the time of one micro-batch per pipeline rank.
  std::optional<StageTimes> stage_times;
  std::vector<Ticks> time_of_pipeline_rank;
  std::optional<PipelineBounds> bounds;
  std::optional<BubbleFormula> formula;
  std::shared_ptr<const TimelineTracks> tracks;
  std::vector<SliceKind> kinds;  ///< kinds in the timeline, ascending
  bool is_sound() const { return problems.empty(); }
};

/// The scenario's plan, with its own partition into stages or the planner's.
Plan plan_of(const Scenario& scenario, const LoadedJob& job);
/// A plan file that gives the same simulation, except for what_if, which plan files do not contain.
PlanFile plan_file_of(const Simulation& simulation);

/// InputErrors become `problems`. Never searches. O(tasks).
std::shared_ptr<const Simulation> simulate_scenario(const Scenario& scenario, JobLibrary& library);

/// The causes of all idle time in a simulation; a separate step that sliders do not wait for.
std::shared_ptr<const TimelineCauses> causes_of(const Simulation& simulation);

/// Synthesizes a schedule for the scenario's stage times, messages and memory (`--schedule auto`).
/// Takes seconds. Throws InputError if no schedule supports the degrees.
Scenario synthesized_scenario(const Scenario& scenario, JobLibrary& library);

}  // namespace meshwright::gui
