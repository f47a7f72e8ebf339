#include "cli/plan/plan_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/job/trainer_notes.hpp"
#include "cli/plan/node_comparison.hpp"
#include "cli/plan/run_cost_text.hpp"
#include "cli/plan/sensitivity_report.hpp"
#include "cli/plan/trainer_comparison.hpp"
#include "cli/reports/report.hpp"
#include "core/base/parse_quantity.hpp"

namespace meshwright {
namespace {

using PlanJson = nlohmann::ordered_json;

PlanFigures figures_of(const RankedPlan& ranked) {
  return figures_of(ranked.plan.strategy, ranked.evaluation, ranked.why);
}

template <class Value>
PlanJson or_null(const std::optional<Value>& value) {
  return value ? PlanJson(*value) : PlanJson();
}

Document infeasible_text(const Infeasible& infeasible) {
  Document text = fmt::format("No plan fits: {}\n", infeasible.reason);
  if (!infeasible.nearest) return text;
  const PlanFigures nearest = figures_of(*infeasible.nearest);
  const std::int64_t gpus = rank_count(nearest.strategy.degrees);
  text += fmt::format("\nNearest plan found, on {} GPU{}:\n", gpus, gpus == 1 ? "" : "s");
  text += plan_table({&nearest, 1});
  if (!nearest.why.empty()) text += nearest.why + "\n";
  return text;
}

constexpr const char* kNotDecided = ", among those decided within --time-limit";

/// What --gpus auto and --seq max have found.
std::string largest_and_fewest_text(const PlanSearch& search) {
  std::string text;
  if (const auto& fewest = search.fewest_devices; fewest && fewest->devices)
    text += fmt::format("{} GPUs are the fewest on which a plan fits{}.\n", *fewest->devices,
                        fewest->proved ? "" : kNotDecided);
  if (const auto& longest = search.longest_sequence; longest && longest->length)
    text += fmt::format(
        "{} tokens are the longest sequence for which a plan fits{}.\n", grouped(*longest->length),
        longest->at_limit ? ", at the limit of the search"
                          : fmt::format(", in multiples of {}", grouped(longest->unit)));
  return text;
}

std::string training_run_text(const PlanSearch& search, const PlannedRun& run) {
  return fmt::format("{} tokens in {} steps. ", tokens_text(run.tokens),
                     grouped(step_count(run, search.goal))) +
         failures_note(run) + price_note(run, *search.cluster);
}

/// What --per-layer gains.
std::string per_layer_text(const PlanSearch& search) {
  const std::optional<Ticks> uniform = search.result.certificate.uniform_step_time;
  if (!uniform || search.figures.empty()) return "";
  const Ticks step = search.figures.front().step_time;
  if (step >= *uniform) return "Per-layer options make no listed plan faster than plan 1.\n";
  return fmt::format("Per-layer options: step {} instead of {}, {:.1f} % faster.\n", to_text(step),
                     to_text(*uniform), 100 * (ratio(*uniform, step) - 1));
}

}  // namespace

Document plan_report(const PlanSearch& search, const std::optional<PlannedRun>& run,
                     bool why_for_all) {
  const PlanCluster& on = *search.cluster;
  Document text =
      fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n{}\n",
                  search.model->text.name, on.text.name, search.goal.gpus, search.goal.global_batch,
                  search.goal.sequence_length, partial_nodes_text(on.cluster, search.goal.gpus));
  if (on.memory_margin > Bytes())
    text += fmt::format("{} of memory are left free on every device.\n", to_text(on.memory_margin));
  if (search.result.infeasible) text += infeasible_text(*search.result.infeasible);
  const std::vector<PlanFigures>& figures = search.figures;
  if (!figures.empty()) {
    Table more = run ? run_cost_table(*run, search.costs) : Table();
    if (!search.trainers.empty()) append_columns(more, runs_in_column(search));
    if (!search.result.by_nodes.empty()) append_columns(more, nodes_column(search));
    text += plan_table(figures, more) + "\n";
    for (std::size_t i = 0; i < (why_for_all ? figures.size() : 1); ++i)
      text += fmt::format("{}. {}\n", i + 1, figures[i].why);
    text += unsupported_plans_text(search.result.plans, on.trainer);
    text += node_comparison_text(search);
    text += trainer_comparison_text(search);
    text += sensitivity_text(search);
    text += largest_and_fewest_text(search);
    if (run) text += training_run_text(search, *run);
  }
  if (search.result.certificate.candidates > 0)
    text += certificate_text(search.result.certificate, search.time) + per_layer_text(search);
  return std::move(text) + cost_model_text(on.cost_model->provenance(), search.validation);
}

std::string certificate_json(const SearchCertificate& certificate, Seconds time) {
  PlanJson pruned = PlanJson::object();
  for (std::size_t i = 0; i < certificate.pruned.size(); ++i)
    pruned[std::string(name_of(static_cast<PruneReason>(i)))] = certificate.pruned[i];
  return PlanJson{
      {"candidates", certificate.candidates},
      {"pruned", pruned},
      {"simulated", certificate.simulated},
      {"seconds", time.value},
      {"proved_optimal", certificate.proved_optimal},
      {"gap", certificate.gap},
      {"refined_by", certificate.refined_by},
      {"uniform_step_time_ns", certificate.uniform_step_time
                                   ? PlanJson(to_nanoseconds(*certificate.uniform_step_time))
                                   : PlanJson()}}
      .dump();
}

std::string ranked_plan_json(const PlanSearch& search, std::size_t i) {
  PlanJson json = PlanJson::parse(to_json(search.figures[i]));
  json["trainer_problems"] = PlanJson::parse(
      problems_json(trainer_problems(search.result.plans[i].plan, search.cluster->trainer)));
  if (const std::vector<NodeGroup>& nodes = search.result.plans[i].nodes; !nodes.empty())
    json["nodes"] = PlanJson::parse(nodes_json(nodes));
  if (!search.costs.empty()) json["training"] = PlanJson::parse(run_cost_json(search.costs[i]));
  return json.dump(-1, ' ', false, PlanJson::error_handler_t::replace);
}

std::string plan_json(const PlanSearch& search, const std::optional<PlannedRun>& run) {
  PlanJson plans = PlanJson::array();
  for (std::size_t i = 0; i < search.figures.size(); ++i)
    plans.push_back(PlanJson::parse(ranked_plan_json(search, i)));
  PlanJson infeasible;
  if (search.result.infeasible) {
    const Infeasible& why = *search.result.infeasible;
    infeasible = {
        {"reason", why.reason},
        {"nearest", why.nearest ? PlanJson::parse(to_json(figures_of(*why.nearest))) : PlanJson()}};
  }
  PlanJson json{
      {"schema", 1},
      {"search", PlanJson::parse(certificate_json(search.result.certificate, search.time))},
      {"trainer",
       {{"name", search.cluster->trainer.name},
        {"restricts_search", search.cluster->is_trainer_named}}},
      {"plans", plans},
      {"infeasible", infeasible}};
  if (!search.result.by_nodes.empty())
    json["nodes"] = PlanJson::parse(node_comparison_json(search));
  if (!search.trainers.empty()) json["trainers"] = PlanJson::parse(trainer_comparison_json(search));
  if (search.sensitivity) json["sensitivity"] = PlanJson::parse(sensitivity_json(search));
  if (run)
    json["run"] = {{"tokens", run->tokens}, {"tokens_per_step", tokens_per_step(search.goal)}};
  if (search.fewest_devices)
    json["fewest_gpus"] = {{"gpus", or_null(search.fewest_devices->devices)},
                           {"proved", search.fewest_devices->proved}};
  if (search.longest_sequence)
    json["longest_sequence"] = {{"tokens", or_null(search.longest_sequence->length)},
                                {"unit", search.longest_sequence->unit},
                                {"proved", search.longest_sequence->proved}};
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, PlanJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright
