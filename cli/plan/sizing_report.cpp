#include "cli/plan/sizing_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/job/trainer_notes.hpp"
#include "cli/plan/node_comparison.hpp"
#include "cli/plan/plan_report.hpp"
#include "cli/plan/run_cost_text.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

using SizingJson = nlohmann::ordered_json;

/// Points with a plan: the rows of the table.
std::vector<const SizingPoint*> planned_points(const Sizing& sizing) {
  std::vector<const SizingPoint*> planned;
  for (const SizingPoint& point : sizing.points)
    if (!point.search.figures.empty()) planned.push_back(&point);
  return planned;
}

/// Why a point has no plan.
std::string reason_of(const SizingPoint& point) {
  if (!point.problems.empty()) return point.problems.front().what;
  if (point.search.result.infeasible) return point.search.result.infeasible->reason;
  if (is_interrupted()) return "interrupted";
  return "no plan was found in time; raise --time-limit";
}

/// "llama-3.1-8b on dgx-h100, 64 GPUs": without what all points share.
std::string name_of(const SizingPoint& point, const PlanRequest& request) {
  std::string name;
  if (request.models.size() > 1) name += point.search.model->text.name;
  if (request.clusters.size() > 1)
    name += fmt::format("{}{}", name.empty() ? "" : " on ", point.search.cluster->text.name);
  return fmt::format("{}{}{} GPUs", name, name.empty() ? "" : ", ", gpus_of(point));
}

/// Those that were selected for the best plan.
const std::vector<NodeGroup>& nodes_of(const SizingPoint& point) {
  return point.search.result.plans.front().nodes;
}

/// "16", or "8 of 16" if the best plan leaves devices unused.
std::string gpus_text(const SizingPoint& point) {
  const int used = gpus_of(point), all = point.search.goal.gpus;
  return used == all ? std::to_string(all) : fmt::format("{} of {}", used, all);
}

Table sizing_table(const std::vector<const SizingPoint*>& points, const PlanRequest& request) {
  Table table = empty_table("#");
  if (request.models.size() > 1) table.columns.push_back(left_aligned("model"));
  if (request.clusters.size() > 1) table.columns.push_back(left_aligned("cluster"));
  const bool any_nodes = std::ranges::any_of(
      points, [](const SizingPoint* point) { return !nodes_of(*point).empty(); });
  if (any_nodes) table.columns.push_back(left_aligned("nodes"));
  append_columns(
      table, empty_table("GPUs", left_aligned("plan"), "step", "tokens/s", "MFU", "peak memory"));
  for (const SizingPoint* point : points) {
    const PlanFigures& f = point->search.figures.front();
    std::vector<std::string> row{std::to_string(table.rows.size() + 1)};
    if (request.models.size() > 1) row.push_back(point->search.model->text.name);
    if (request.clusters.size() > 1) row.push_back(point->search.cluster->text.name);
    if (any_nodes) row.push_back(nodes_text(nodes_of(*point)));
    row.push_back(gpus_text(*point));
    row.push_back(split_text(f.strategy));
    row.push_back(to_text(f.step_time));
    row.push_back(grouped(std::llround(f.tokens_per_second_per_gpu * gpus_of(*point))));
    row.push_back(percent(f.mfu));
    row.push_back(to_text(f.peak_memory));
    table.rows.push_back(std::move(row));
  }
  if (request.run) {
    std::vector<std::optional<RunCost>> costs;
    costs.reserve(points.size());
    for (const SizingPoint* point : points) costs.push_back(point->search.costs.front());
    append_columns(table, run_cost_table(*request.run, costs));
  }
  Table marks = empty_table("Pareto");
  if (request.deadline) marks.columns.insert(marks.columns.begin(), {"meets deadline"});
  for (const SizingPoint* point : points) {
    std::vector<std::string>& row = marks.rows.emplace_back();
    if (request.deadline) row.emplace_back(point->meets_deadline ? "yes" : "no");
    row.emplace_back(point->is_on_front ? "*" : "");
  }
  append_columns(table, marks);
  return table;
}

/// What the columns "Pareto" and "p10 to p90" mean.
std::string table_note(const std::vector<const SizingPoint*>& points, const PlanRequest& request) {
  bool all_cost = request.run.has_value();
  std::size_t validated = 0;
  for (const SizingPoint* point : points) {
    all_cost = all_cost && point->search.costs.front() && point->search.costs.front()->cost;
    if (point->search.figures.front().range) ++validated;
  }
  std::string text = fmt::format(
      "*: on the Pareto front of {}{}\n", all_cost ? "time, GPUs and cost" : "time and GPUs",
      request.models.size() > 1 ? ", among plans for the same model" : "");
  if (request.run && validated > 0 && validated < points.size())
    text += "p10 to p90 -: no published run resembles the plan\n";
  return text;
}

std::string unplanned_text(const Sizing& sizing, const PlanRequest& request) {
  std::string text;
  for (const SizingPoint& point : sizing.points)
    if (point.search.figures.empty())
      text += fmt::format("No plan for {}: {}\n", name_of(point, request), reason_of(point));
  return text;
}

/// If none meets the deadline: how many GPUs would at the same throughput per GPU.
std::string missed_deadline_text(const SizingPoint& fastest, const PlanRequest& request) {
  const double needed = std::ceil(gpus_of(fastest) * ratio(*time_of(fastest), *request.deadline));
  return fmt::format(
      "No plan meets the deadline of {} days. The fastest takes {} days on {}; at its throughput "
      "per GPU, {} GPUs would be needed.\n",
      days_text(*request.deadline), days_text(*time_of(fastest)), name_of(fastest, request),
      grouped(std::llround(needed)));
}

std::string recommendation_text(const Sizing& sizing, const PlanRequest& request) {
  if (!sizing.recommended) return "";
  const SizingPoint& point = sizing.points[*sizing.recommended];
  if (request.deadline && !point.meets_deadline) return missed_deadline_text(point, request);
  std::string text = fmt::format("Recommended: {}", name_of(point, request));
  if (!request.deadline) return text + ", the fastest plan.\n";
  text +=
      fmt::format(", the fewest that meet the deadline of {} days", days_text(*request.deadline));
  const auto& range = point.search.costs.front()->range;
  if (range && range->p90 > *request.deadline)
    text += fmt::format("; at p90 it takes {} days", days_text(range->p90));
  return text + ".\n";
}

std::string training_run_notes(const std::vector<const SizingPoint*>& points,
                               const PlannedRun& run) {
  std::string text = failures_note(run);
  std::set<std::string> notes;
  for (const SizingPoint* point : points)
    if (std::string note = price_note(run, *point->search.cluster); notes.insert(note).second)
      text += note;
  return text;
}

std::string searches_text(const Sizing& sizing, const PlanRequest& request) {
  std::vector<std::string> stopped;
  std::int64_t candidates = 0;
  std::size_t searches = 0;
  for (const SizingPoint& point : sizing.points) {
    if (!point.is_searched) continue;
    const SearchCertificate& certificate = point.search.result.certificate;
    ++searches;
    candidates += certificate.candidates;
    if (certificate.gap > 0)  // the best plan is not proved optimal
      stopped.push_back(fmt::format(
          "{} ({})", name_of(point, request),
          certificate.gap < 1
              ? fmt::format("the optimum is at most {} faster", percent(certificate.gap))
              : "without a bound of the optimum"));
  }
  return fmt::format("{} searches of {} candidates in {}: {}.\n", searches, grouped(candidates),
                     to_text(sizing.time),
                     stopped.empty()
                         ? "each optimal within the searched space and cost model"
                         : fmt::format("stopped early for {}", fmt::join(stopped, ", ")));
}

/// One line per cluster, with the validation of its recommended or first plan.
std::string cost_models_text(const Sizing& sizing, std::vector<const SizingPoint*> points) {
  if (sizing.recommended) points.insert(points.begin(), &sizing.points[*sizing.recommended]);
  std::string text;
  std::set<const PlanCluster*> shown;
  for (const SizingPoint* point : points) {
    const PlanSearch& search = point->search;
    if (shown.insert(search.cluster).second)
      text += cost_model_text(search.cluster->cost_model->provenance(), search.validation);
  }
  return text;
}

/// What the trainers cannot run of the plans.
std::string unsupported_points_text(const std::vector<const SizingPoint*>& points) {
  std::map<std::string, const Trainer*> trainers;
  for (const SizingPoint* point : points)
    trainers[point->search.cluster->trainer.name] = &point->search.cluster->trainer;
  std::string text;
  for (const auto& [name, trainer] : trainers) {
    std::vector<RankedPlan> plans(points.size());  // a plan on one device, which all can run
    for (std::size_t i = 0; i < points.size(); ++i)
      if (points[i]->search.cluster->trainer.name == name)
        plans[i] = points[i]->search.result.plans.front();
    text += unsupported_plans_text(plans, *trainer);
  }
  return text;
}

SizingJson json_of(const SizingPoint& point) {
  const PlanSearch& search = point.search;
  const bool has_plan = !search.figures.empty();
  SizingJson json{
      {"model", search.model->text.name},
      {"cluster", search.cluster->text.name},
      {"gpus", search.goal.gpus},
      {"plan", has_plan ? SizingJson::parse(ranked_plan_json(search, 0)) : SizingJson()},
      {"reason", has_plan ? SizingJson() : SizingJson(reason_of(point))},
      {"meets_deadline", point.meets_deadline},
      {"on_pareto_front", point.is_on_front},
      {"search", point.is_searched
                     ? SizingJson::parse(certificate_json(search.result.certificate, search.time))
                     : SizingJson()}};
  if (search.fewest_devices) json["proved_fewest_gpus"] = search.fewest_devices->proved;
  return json;
}

}  // namespace

Document sizing_report(const Sizing& sizing, const PlanRequest& request) {
  const std::vector<const SizingPoint*> points = planned_points(sizing);
  const Goal& goal = sizing.points.front().search.goal;
  Document text = fmt::format("{} on {}: global batch size {}, sequence length {}",
                              fmt::join(request.models, ", "), fmt::join(request.clusters, ", "),
                              goal.global_batch, goal.sequence_length);
  if (request.run)
    text += fmt::format(", {} tokens in {} steps", tokens_text(request.run->tokens),
                        grouped(step_count(*request.run, goal)));
  text += "\n\n";
  if (!points.empty())
    text += sizing_table(points, request) + Document(table_note(points, request)) + "\n";
  text += recommendation_text(sizing, request) + unplanned_text(sizing, request);
  text += unsupported_points_text(points);
  if (request.run) text += training_run_notes(points, *request.run);
  return std::move(text) + searches_text(sizing, request) + cost_models_text(sizing, points);
}

std::string sizing_json(const Sizing& sizing, const PlanRequest& request) {
  SizingJson points = SizingJson::array();
  for (const SizingPoint& point : sizing.points) points.push_back(json_of(point));
  const Goal& goal = sizing.points.front().search.goal;
  SizingJson json{
      {"schema", 1},
      {"points", points},
      {"recommended", sizing.recommended ? SizingJson(*sizing.recommended) : SizingJson()},
      {"seconds", sizing.time.value}};
  if (request.run)
    json["run"] = {{"tokens", request.run->tokens}, {"tokens_per_step", tokens_per_step(goal)}};
  if (request.deadline) json["deadline_days"] = request.deadline->value / 86'400;
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, SizingJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright
