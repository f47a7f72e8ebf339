#include "cli/explain/explanation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/job/job_error.hpp"
#include "cli/job/trainer_notes.hpp"
#include "cli/reports/asynchronous_report.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/document.hpp"
#include "cli/terminal/interrupt.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"

namespace meshwright {
namespace {

using ExplainJson = nlohmann::ordered_json;

// ---- text ---------------------------------------------------------------------------------------

std::vector<NamedValue> stages_list(const Plan& plan) {
  const ParallelDegrees& d = plan.strategy.degrees;
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  const bool is_sharded = rule != nullptr && rule->output_barriers > 0;
  return {{"pipeline ranks", std::to_string(d.pipeline)},
          {"stages", std::to_string(stage_count(d))},
          {"layers per stage", fmt::format("{}", fmt::join(plan.blocks_per_stage, " "))},
          {"embedding", is_sharded ? "sharded over all stages" : "on the first stage"},
          {"output layer", is_sharded ? "sharded over all stages" : "on the last stage"}};
}

/// "TP8 PP4 DP2 → TP4 PP4 DP4 (--tp 4 --dp 4)", or the change alone if the sizes stay.
std::string change_text(const Strategy& from, const EvaluatedNeighbor& to) {
  const std::string before = split_text(from), after = split_text(to.figures.strategy);
  return before == after ? to.change : fmt::format("{} → {} ({})", before, after, to.change);
}

/// "Change first: TP8 PP4 DP2 → TP4 PP4 DP4 (--tp 4 --dp 4): 14.0 % faster, fits".
std::string advice_text(const Explanation& e) {
  if (!e.change_first) return "No single change is faster and fits.\n";
  return fmt::format("Change first: {}: {} faster, fits\n",
                     change_text(e.figures.strategy, *e.change_first),
                     percent(gain(e.change_first->figures, e.figures)));
}

/// "8.3 GiB more activations and 1.2 GiB more gradients": what grows by at least a tenth of the
/// missing memory, most first.
std::string growth_text(std::vector<ComparedTerm<Bytes>> memory, Bytes missing) {
  constexpr std::int64_t kWorthNamingOfMissing = 10;
  std::erase_if(memory, [&](const ComparedTerm<Bytes>& term) {
    return term.change() <= Bytes(0) || term.change() < missing / kWorthNamingOfMissing;
  });
  std::ranges::stable_sort(memory, std::ranges::greater(), &ComparedTerm<Bytes>::change);
  std::vector<std::string> parts;
  parts.reserve(memory.size());
  for (const ComparedTerm<Bytes>& term : memory)
    parts.push_back(fmt::format("{} more {}", to_text(term.change()), term.name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string blocked_text(const Explanation& e) {
  if (!e.blocked) return "";
  const EvaluatedNeighbor& n = e.blocked->neighbor;
  const Bytes missing = missing_memory(n.figures);
  const std::string growth = growth_text(e.blocked->memory, missing);
  std::string text = fmt::format(
      "Fastest change that does not fit: {}: {} faster, lacks {} of memory: needs {} of {} on "
      "pipeline rank {}{}\n",
      change_text(e.figures.strategy, n), percent(gain(n.figures, e.figures)), to_text(missing),
      to_text(n.figures.peak_memory), to_text(n.figures.memory_capacity), n.fullest_pipeline_rank,
      growth.empty() ? "" : fmt::format(" ({})", growth));
  if (!e.blocked->remedy) return text + "  No further single change makes it fit.\n";
  const EvaluatedNeighbor& remedy = *e.blocked->remedy;
  const double faster = gain(remedy.figures, e.figures);
  return text + fmt::format("  It fits with {}: {} {} than this plan.\n",
                            change_text(n.figures.strategy, remedy), percent(std::abs(faster)),
                            faster >= 0 ? "faster" : "slower");
}

/// Why ZeRO 2 can need more memory than ZeRO 1.
std::string memory_note(const Explanation& e) {
  const auto less = std::ranges::find(e.neighbors, "--zero 1", &EvaluatedNeighbor::change);
  if (e.figures.strategy.zero != 2 || less == e.neighbors.end() ||
      less->figures.peak_memory >= e.figures.peak_memory)
    return "";
  return fmt::format(
      "ZeRO 2 needs more memory than ZeRO 1 here ({} against {}): beside its shard a rank holds "
      "the "
      "unreduced gradients of two buckets at a time, which are almost the whole model. Smaller "
      "buckets need less.\n",
      to_text(e.figures.peak_memory), to_text(less->figures.peak_memory));
}

std::vector<NamedValue> formulas_list(const Job& job, const std::string& validation) {
  std::vector<NamedValue> list{
      {"cost model", job.cost_model->provenance()},
      {"accuracy", validation},
      {"MFU",
       "model FLOPs (3 x forward, full attention, no recomputation) / peak; Narayanan et "
       "al., arXiv 2104.04473, section 5.1"},
      {"bubble", "idle time not explained by exposed communication / period; mean over ranks"},
      {"activations", "per operator; Korthikanti et al., arXiv 2205.05198, section 4.1"},
      {"peak memory", "allocations and releases in the order of the schedule"}};
  for (const auto& [figure, source] : job.cluster.sources) list.push_back({figure, source});
  return list;
}

// ---- JSON ---------------------------------------------------------------------------------------

ExplainJson blocked_json(const Explanation& e) {
  if (!e.blocked) return nullptr;
  const EvaluatedNeighbor& n = e.blocked->neighbor;
  ExplainJson change = ExplainJson::object(), remedy;
  for (const ComparedTerm<Bytes>& term : e.blocked->memory) change[term.name] = term.change().value;
  if (e.blocked->remedy)
    remedy = {{"change", e.blocked->remedy->change},
              {"faster", gain(e.blocked->remedy->figures, e.figures)},
              {"plan", ExplainJson::parse(to_json(e.blocked->remedy->figures))}};
  return {{"change", n.change},
          {"faster", gain(n.figures, e.figures)},
          {"missing_memory_bytes", missing_memory(n.figures).value},
          {"pipeline_rank", n.fullest_pipeline_rank},
          {"memory_change_bytes", change},
          {"plan", ExplainJson::parse(to_json(n.figures))},
          {"fits_with", remedy}};
}

}  // namespace

Explanation explain(const Job& job, const JobFlags& flags) {
  const Plan& plan = job.file.plan;
  TrainingJob training = training_job(job);
  training.checkpoint = stop_if_interrupted;
  const Prediction prediction = predict(training);
  Explanation e;
  e.ranks = prediction.graph.ranks;
  e.evaluation = prediction.evaluation;
  e.figures =
      figures_of(plan.strategy, e.evaluation, job.file.predicted ? job.file.predicted->why : "");
  e.figures.range = range_of(e.figures.step_time, prediction.error_bar);
  e.validation = validation_text(prediction.error_bar, *job.cost_model);
  e.neighbors = evaluate_neighbors(training);
  if (const auto* best = fastest_that_fits(training, e.neighbors, e.figures.step_time))
    e.change_first = *best;
  e.blocked = fastest_that_does_not_fit(training, e.evaluation, e.neighbors);
  e.asynchronous = asynchronous_text(plan.strategy, prediction.graph, prediction.prices);
  e.trainer_problems = trainer_problems(job, flags);
  return e;
}

double gain(const PlanFigures& figures, const PlanFigures& than) {
  return ratio(than.step_time, figures.step_time) - 1;
}

namespace {

bool has_effect(const EvaluatedNeighbor& neighbor, const PlanFigures& plan) {
  return neighbor.figures.step_time != plan.step_time ||
         neighbor.figures.peak_memory != plan.peak_memory;
}

/// "Without effect: --bucket pytorch, --schedule naive\n", or nothing.
std::string without_effect_text(const Explanation& e) {
  std::vector<std::string> changes;
  for (const EvaluatedNeighbor& neighbor : e.neighbors)
    if (!has_effect(neighbor, e.figures)) changes.push_back(neighbor.change);
  return changes.empty() ? "" : fmt::format("Without effect: {}\n", fmt::join(changes, ", "));
}

}  // namespace

Table neighbors_table(const std::string& name, const PlanFigures& plan,
                      const std::vector<EvaluatedNeighbor>& neighbors) {
  Table table = empty_table(left_aligned("change"), "step", "MFU", "bubble", "busiest",
                            "peak memory", left_aligned(""));
  const auto add = [&table](const std::string& change, const PlanFigures& f) {
    const Bytes missing = missing_memory(f);
    table.rows.push_back({change, to_text(f.step_time), percent(f.mfu), percent(f.bubble_of_period),
                          percent(f.busiest_rank_bubble), to_text(f.peak_memory),
                          missing > Bytes(0) ? fmt::format("lacks {}", to_text(missing)) : ""});
  };
  add(name, plan);
  for (const EvaluatedNeighbor& neighbor : neighbors)
    if (has_effect(neighbor, plan)) add(neighbor.change, neighbor.figures);
  return table;
}

Document explanation_text(const Job& job, const Explanation& e, const FailureFlags& failures) {
  const Strategy& s = job.file.plan.strategy;
  Document text = fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n{}\n\n",
                              job.file.model_name, job.file.cluster_name, rank_count(s.degrees),
                              s.global_batch, s.sequence_length, strategy_text(s));
  text += figures_list(e.figures);
  if (!e.figures.why.empty()) text += "\n" + e.figures.why + "\n";
  if (!e.trainer_problems.empty()) text += "\n" + trainer_notes(e.trainer_problems);
  text += "\nPipeline stages\n";
  text += stages_list(job.file.plan);
  text += "\nStep time breakdown, mean over all ranks\n";
  text += step_parts_text(e.evaluation);
  text += "\nStep time breakdown by pipeline rank\n";
  text += indented(breakdown_table(e.ranks, e.evaluation));
  text += "\nPeak memory by pipeline rank\n";
  text += indented(memory_table(e.ranks, e.evaluation));
  text += memory_note(e);
  text += e.asynchronous;
  if (const auto model = failure_model(failures, static_cast<int>(rank_count(s.degrees))))
    text += goodput_text(*model, checkpoint_interval(failures), e.evaluation.step_time);
  text += "\nAlternatives: one change each\n";
  text += indented(neighbors_table("this plan", e.figures, e.neighbors));
  text += without_effect_text(e) + advice_text(e) + blocked_text(e) + "\nSources of the figures\n";
  return std::move(text) + formulas_list(job, e.validation);
}

std::string explanation_json(const Job& job, const Explanation& e, const FailureFlags& failures) {
  const auto devices = static_cast<int>(rank_count(job.file.plan.strategy.degrees));
  ExplainJson json{{"schema", 1}};
  json.update(ExplainJson::parse(to_json(e.figures)));
  json["blocks_per_stage"] = job.file.plan.blocks_per_stage;
  json.update(ExplainJson::parse(ranks_json(e.ranks, e.evaluation)));
  json["changes"] = ExplainJson::array();
  for (const EvaluatedNeighbor& neighbor : e.neighbors)
    json["changes"].push_back({{"change", neighbor.change},
                               {"missing_memory_bytes", missing_memory(neighbor.figures).value},
                               {"plan", ExplainJson::parse(to_json(neighbor.figures))}});
  json["change_first"] = e.change_first ? ExplainJson(e.change_first->change) : ExplainJson();
  json["fastest_that_does_not_fit"] = blocked_json(e);
  json.update(ExplainJson::parse(
      variation_json({}, failure_model(failures, devices), checkpoint_interval(failures))));
  json["cost_model"] = job.cost_model->provenance();
  json["validation"] = e.validation;
  json["trainer_problems"] = ExplainJson::parse(problems_json(e.trainer_problems));
  json["sources"] = job.cluster.sources;
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, ExplainJson::error_handler_t::replace) + "\n";
}

}  // namespace meshwright
