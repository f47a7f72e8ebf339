/// A Scenario worked out: lowered, priced, simulated, laid out for drawing. Pure functions for
/// jobs; the results are shared, never changed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/evaluation.hpp"
#include "core/io_plan.hpp"
#include "core/model_graph.hpp"
#include "gui/bubble_formula.hpp"
#include "gui/scenario.hpp"
#include "gui/timeline_causes.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// What the texts of a scenario say.
struct LoadedJob {
  ModelGraph model;
  Cluster cluster;
  std::string calibration;  ///< text of the scenario's; empty: none
  std::unique_ptr<CostModel> cost_model;
};

/// Keeps the last few jobs that were read, so that a slider does not parse texts. For any thread.
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
  std::vector<Entry> entries_;  ///< latest last
};

/// No order of the same passes is shorter; see route_bound().
struct PipelineBounds {
  Ticks makespan, period;
  friend bool operator==(const PipelineBounds&, const PipelineBounds&) = default;
};

struct Simulation {
  Scenario scenario;
  /// What is wrong with the scenario; then all that follows is empty, but for `job` if it could be
  /// read.
  std::vector<Diagnostic> problems;
  std::shared_ptr<const LoadedJob> job;
  Plan plan;
  Schedule schedule;
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  TaskTimes times;
  Evaluation evaluation;
  PlanFigures figures;
  /// What every stage takes, and by pipeline position what a micro-batch does; absent if passes are
  /// cut.
  std::optional<StageTimes> stage_times;
  std::vector<Ticks> time_of_position;
  std::optional<PipelineBounds> bounds;
  std::optional<BubbleFormula> formula;
  std::shared_ptr<const TimelineTracks> tracks;
  std::vector<SliceKind> kinds;  ///< that the timeline shows, ascending
  bool is_sound() const { return problems.empty(); }
};

/// The scenario's plan: its own cut, or the planner's.
Plan plan_of(const Scenario& scenario, const LoadedJob& job);
/// Plan file that simulates to the same, but for what_if, which plan files do not know.
PlanFile plan_file_of(const Simulation& simulation);

/// InputErrors become `problems`. Searches nothing. O(tasks).
std::shared_ptr<const Simulation> simulate_scenario(const Scenario& scenario, JobLibrary& library);

/// The causes of every gap of a simulation; apart, since a slider need not wait for them.
std::shared_ptr<const TimelineCauses> causes_of(const Simulation& simulation);

/// Orders of its own for the scenario's stage times, messages and memory (`--schedule auto`).
/// Seconds of work. Throws InputError if no schedule takes the split.
Scenario made_to_measure_scenario(const Scenario& scenario, JobLibrary& library);

}  // namespace meshwright::gui
