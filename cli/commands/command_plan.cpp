#include "cli/commands/commands.hpp"
#include "cli/plan/plan_flags.hpp"
#include "cli/plan/plan_report.hpp"
#include "cli/plan/plan_search.hpp"
#include "cli/plan/sensitivity_report.hpp"
#include "cli/plan/sizing_report.hpp"
#include "cli/plan/sizing_search.hpp"
#include "cli/plan/trainer_comparison.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/formats/file.hpp"

namespace meshwright {
namespace {

/// Writes the plan of -o, if there is one. `fails`: exit code 1 in spite of a plan.
Outcome finish_plan(const Document& report, const PlanSearch* best, bool fails,
                    const OutputFlags& output) {
  Outcome outcome = outcome_of(report, output);
  if (best == nullptr || fails) outcome.exit_code = kExitNoPlanFits;
  if (best == nullptr) return outcome;
  if (is_interrupted()) outcome.exit_code = kExitInterrupted;
  if (output.file.empty()) return outcome;
  write_file(output.file, to_json(plan_file_of(*best)));
  if (output.file == "-") outcome.text.clear();  // standard output is the plan file
  return outcome;
}

Outcome plan_once(const PlanFlags& flags, const PlanRequest& request, const PlanModel& model,
                  const PlanCluster& cluster) {
  PlanSearch search = search_once(flags, request, model, cluster);
  search.trainers = best_of_trainers(flags, search);
  if (flags.sensitivity) search.sensitivity = plan_sensitivity(flags, search);
  return finish_plan(flags.output.json ? plan_json(search, request.run)
                                       : plan_report(search, request.run, flags.why),
                     search.figures.empty() ? nullptr : &search, false, flags.output);
}

Outcome plan_sizes(const PlanFlags& flags, const PlanRequest& request,
                   const std::vector<PlanModel>& models, const std::vector<PlanCluster>& clusters) {
  const Sizing sizing = size_clusters(flags, request, models, clusters);
  const SizingPoint* best = nullptr;
  for (const SizingPoint& point : sizing.points)
    if (!point.search.figures.empty()) best = &point;
  if (sizing.recommended) best = &sizing.points[*sizing.recommended];
  if (best == nullptr) stop_if_interrupted();
  const bool misses_deadline = request.deadline && best != nullptr && !best->meets_deadline;
  return finish_plan(
      flags.output.json ? sizing_json(sizing, request) : sizing_report(sizing, request),
      best == nullptr ? nullptr : &best->search, misses_deadline, flags.output);
}

Outcome run_plan(const PlanFlags& flags) {
  if (!flags.graph.file.empty()) return plan_graph(graph_plan_request(flags), flags.output);
  const PlanRequest request = plan_request(flags);
  std::vector<PlanModel> models;
  for (const std::string& name : request.models) models.push_back(load_plan_model(name));
  std::vector<PlanCluster> clusters;
  for (const std::string& name : request.clusters)
    clusters.push_back(load_plan_cluster(name, flags.sources, request.memory_margin));
  const PartialResults partial_results;
  return is_single_search(request) ? plan_once(flags, request, models.front(), clusters.front())
                                   : plan_sizes(flags, request, models, clusters);
}

}  // namespace

Command plan_command(CLI::App& app) { return make_command(app, add_plan_command, run_plan); }

}  // namespace meshwright
