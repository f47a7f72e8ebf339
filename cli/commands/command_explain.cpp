#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/flags/variation_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/job/job_error.hpp"
#include "cli/job/launch_outcome.hpp"
#include "cli/job/trainer_notes.hpp"
#include "cli/reports/asynchronous_report.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/terminal/table.hpp"
#include "core/base/parse_quantity.hpp"
#include "core/plan/strategy_text.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "models/launch/launch_text.hpp"
#include "planner/search/neighbors.hpp"
#include "planner/search/search.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

struct LaunchChoice {
  std::optional<LaunchTarget> target;  ///< absent: that of the plan's trainer
};
struct ExplainFlags {
  JobFlags job;
  std::optional<LaunchChoice> launch;  ///< print launch options instead
  FailureFlags failures;
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

struct Explanation {
  std::vector<RankInfo> ranks;
  Evaluation evaluation;
  PlanFigures figures;
  std::vector<EvaluatedNeighbor> neighbors;
  std::string validation;
  std::string asynchronous;  ///< text on asynchronous training, or empty
  std::vector<Diagnostic> trainer_problems;
};

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
  e.asynchronous = asynchronous_text(plan.strategy, prediction.graph, prediction.prices);
  e.trainer_problems = trainer_problems(job, flags);
  return e;
}

// ---- text ---------------------------------------------------------------------------------------

std::string stages_text(const Plan& plan) {
  const ParallelDegrees& d = plan.strategy.degrees;
  const ScheduleRule* rule = find_schedule_rule(plan.strategy.schedule);
  const bool is_sharded = rule != nullptr && rule->output_barriers > 0;
  return to_text({{"pipeline ranks", std::to_string(d.pipeline)},
                  {"stages", std::to_string(stage_count(d))},
                  {"layers per stage", fmt::format("{}", fmt::join(plan.blocks_per_stage, " "))},
                  {"embedding", is_sharded ? "sharded over all stages" : "on the first stage"},
                  {"output layer", is_sharded ? "sharded over all stages" : "on the last stage"}});
}

std::string neighbors_text(const Explanation& e) {
  Table table = empty_table(left_aligned("change"), "step", "MFU", "bubble", "busiest",
                            "peak memory", left_aligned(""));
  const auto add = [&table](const std::string& change, const PlanFigures& f) {
    table.rows.push_back({change, to_text(f.step_time), percent(f.mfu), percent(f.bubble_of_period),
                          percent(f.busiest_rank_bubble), to_text(f.peak_memory),
                          f.peak_memory > f.memory_capacity ? "out of memory" : ""});
  };
  add("this plan", e.figures);
  for (const EvaluatedNeighbor& neighbor : e.neighbors) add(neighbor.change, neighbor.figures);
  return to_indented_text(table);
}

/// The fastest change that fits and that the trainer can run; null if none is faster.
const EvaluatedNeighbor* change_first(const Job& job, const Explanation& e) {
  const EvaluatedNeighbor* best = nullptr;
  for (const EvaluatedNeighbor& neighbor : e.neighbors) {
    const PlanFigures& f = neighbor.figures;
    const Ticks limit = best != nullptr ? best->figures.step_time : e.figures.step_time;
    if (f.step_time < limit && f.peak_memory <= f.memory_capacity &&
        can_run(job.trainer.abilities, Plan{.strategy = f.strategy, .blocks_per_stage = {}}))
      best = &neighbor;
  }
  return best;
}

/// "Change first: TP8 PP4 DP2 → TP4 PP4 DP4 (--tp 4 --dp 4): 14.0 % faster, fits".
std::string advice_text(const Job& job, const Explanation& e) {
  const EvaluatedNeighbor* best = change_first(job, e);
  if (best == nullptr) return "No single change is faster and fits.\n";
  const std::string before = split_text(e.figures.strategy);
  const std::string after = split_text(best->figures.strategy);
  const double gain = static_cast<double>(e.figures.step_time.value) /
                          static_cast<double>(best->figures.step_time.value) -
                      1;
  const std::string change =
      before == after ? best->change : fmt::format("{} → {} ({})", before, after, best->change);
  return fmt::format("Change first: {}: {} faster, fits\n", change, percent(gain));
}

std::string formulas_text(const Job& job, const std::string& validation) {
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
  return to_text(list);
}

std::string human_text(const Job& job, const Explanation& e, const FailureFlags& failures) {
  const Strategy& s = job.file.plan.strategy;
  std::string text =
      fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n{}\n\n",
                  job.file.model_name, job.file.cluster_name, rank_count(s.degrees), s.global_batch,
                  s.sequence_length, strategy_text(s));
  text += figures_text(e.figures);
  if (!e.figures.why.empty()) text += "\n" + e.figures.why + "\n";
  if (!e.trainer_problems.empty()) text += "\n" + trainer_notes(e.trainer_problems);
  text += "\nPipeline stages\n" + stages_text(job.file.plan);
  text += "\nStep time breakdown, mean over all ranks\n" + step_parts_text(e.evaluation);
  text += "\nStep time breakdown by pipeline rank\n" + breakdown_table(e.ranks, e.evaluation);
  text += "\nPeak memory by pipeline rank\n" + memory_table(e.ranks, e.evaluation);
  text += e.asynchronous;
  if (const auto model = failure_model(failures, static_cast<int>(rank_count(s.degrees))))
    text += goodput_text(*model, checkpoint_interval(failures), e.evaluation.step_time);
  text += "\nAlternatives: one change each\n" + neighbors_text(e) + advice_text(job, e);
  return text + "\nSources of the figures\n" + formulas_text(job, e.validation);
}

// ---- JSON ---------------------------------------------------------------------------------------

std::string json_text(const Job& job, const Explanation& e, const FailureFlags& failures) {
  const auto devices = static_cast<int>(rank_count(job.file.plan.strategy.degrees));
  Json json{{"schema", 1}};
  json.update(Json::parse(to_json(e.figures)));
  json["blocks_per_stage"] = job.file.plan.blocks_per_stage;
  json.update(Json::parse(ranks_json(e.ranks, e.evaluation)));
  json["changes"] = Json::array();
  for (const EvaluatedNeighbor& neighbor : e.neighbors)
    json["changes"].push_back(
        {{"change", neighbor.change}, {"plan", Json::parse(to_json(neighbor.figures))}});
  const EvaluatedNeighbor* best = change_first(job, e);
  json["change_first"] = best != nullptr ? Json(best->change) : Json();
  json.update(Json::parse(
      variation_json({}, failure_model(failures, devices), checkpoint_interval(failures))));
  json["cost_model"] = job.cost_model->provenance();
  json["validation"] = e.validation;
  json["trainer_problems"] = Json::parse(problems_json(e.trainer_problems));
  json["sources"] = job.cluster.sources;
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---- other trainers -----------------------------------------------------------------------------

constexpr std::string_view kTargetOfTrainer = "auto";

std::optional<LaunchChoice> launch_choice_from_word(std::string_view word) {
  if (word == kTargetOfTrainer) return LaunchChoice{};
  if (const auto target = launch_target_from_word(word)) return LaunchChoice{*target};
  return std::nullopt;
}

std::vector<std::string> launch_choices() {
  std::vector<std::string> words = launch_words();
  words.emplace_back(kTargetOfTrainer);
  return words;
}

/// The trainer named on the command line, or that of the plan.
LaunchTarget target_of(const LaunchChoice& choice, const Trainer& trainer) {
  if (choice.target) return *choice.target;
  if (trainer.launch) return *trainer.launch;
  throw UsageError(
      {.where = "--launch",
       .what = fmt::format("trainer '{}' has no launch options to print", trainer.name),
       .hint = fmt::format("use one of: {}", fmt::join(launch_words(), ", "))});
}

Outcome explain_launch(LaunchTarget target, const Plan& plan, const OutputFlags& flags) {
  return launch_outcome(name_of(target), launch_text(target, plan), flags);
}

CLI::App* add_explain_command(CLI::App& app, ExplainFlags& flags) {
  CLI::App* command = app.add_subcommand(
      "explain", "Explain a plan: time and memory by stage, and the effect of single changes.");
  add_job_flags(*command, flags.job);
  add_failure_flags(*command, flags.failures);
  {
    const OptionGroup group(*command, "Launch");
    add_choice(*command, "--launch", flags.launch, launch_choice_from_word, launch_choices(),
               "print the options or config of this trainer for the plan instead; auto: of the "
               "plan's trainer");
  }
  add_output_flags(*command, flags.output, "the result");
  command->footer(
      "Examples:\n"
      "  meshwright explain best.plan.json\n"
      "  meshwright explain --model llama-3.1-70b --cluster dgx-h100 --gpus 64 --tp 8 --pp 4 \\\n"
      "      --sequence-parallel --zero 1 --global-batch 128 --seq 8192");
  return command;
}

Outcome run_explain(const ExplainFlags& flags) {
  const Job job = load_job(flags.job);
  if (flags.launch)
    return explain_launch(target_of(*flags.launch, job.trainer), job.file.plan, flags.output);
  const Explanation explanation = explain(job, flags.job);
  return deliver(flags.output.json ? json_text(job, explanation, flags.failures)
                                   : human_text(job, explanation, flags.failures),
                 flags.output);
}

}  // namespace

Command explain_command(CLI::App& app) {
  return make_command(app, add_explain_command, run_explain);
}

}  // namespace meshwright
