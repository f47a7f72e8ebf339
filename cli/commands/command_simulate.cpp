#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands/commands.hpp"
#include "cli/flags/amounts.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "cli/flags/variation_flags.hpp"
#include "cli/job/job.hpp"
#include "cli/job/job_error.hpp"
#include "cli/job/trainer_notes.hpp"
#include "cli/reports/report.hpp"
#include "cli/terminal/interrupt.hpp"
#include "cli/validation/step_range.hpp"
#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"
#include "core/plan/weight_versions.hpp"
#include "simulator/predict/predict.hpp"

namespace meshwright {
namespace {

struct SimulateFlags {
  JobFlags job;
  bool all_ranks = false, contention = false;
  std::optional<int> steps;  ///< in the timeline of a flushless schedule
  VariationFlags variation;
  FailureFlags failures;
  std::string range_file, tolerance;  ///< of --write-watch; empty: none
  OutputFlags output;
};

using Json = nlohmann::ordered_json;

struct Simulation {
  Prediction prediction;
  std::optional<StepVariation> variation = {};
  std::optional<FailureModel> failures = {};
  std::optional<Seconds> checkpoint_interval = {};
  std::vector<Diagnostic> trainer_problems = {};
  /// With contention or stragglers: all ranks, of which the graph of `prediction` has those that
  /// differ.
  std::optional<std::pair<PricedReplicas, SimulatedReplicas>> replicas = {};
};

/// Jitter differs on all ranks and needs a graph of them.
bool simulates_replicas(const SimulateFlags& flags) {
  return flags.contention || (varies_steps(flags.variation) && flags.variation.jitter.empty());
}

TrainingJob training_job(const Job& job, const SimulateFlags& flags) {
  TrainingJob training = training_job(job);
  // Contention needs the messages of all ranks; so does jitter, as the slowest rank decides.
  if (flags.all_ranks || flags.contention || varies_steps(flags.variation))
    training.ranks = RankSet::kAll;
  training.contention = flags.contention;
  training.checkpoint = stop_if_interrupted;
  return training;
}

Simulation simulate_replicas(const Job& job, const SimulateFlags& flags) {
  const TrainingJob training = training_job(job, flags);
  PricedReplicas priced = price_replicas(training);
  const Variation variation = variation_of(flags.variation, priced.all.ranks);
  SimulatedReplicas nominal = simulate_replicas(priced.all, priced.prices, {}, priced.shared());
  stop_if_interrupted();
  Simulation s{.prediction = predict(training, priced, nominal)};
  if (varies_steps(flags.variation)) {
    const SimulatedReplicas slowed =
        simulate_replicas(priced.all, priced.prices, variation.stragglers, priced.shared());
    const auto step = job_facts(training.plan.strategy, job.model, job.cluster).step;
    s.variation = {.variation = variation,
                   .nominal = s.prediction.evaluation.step_time,
                   .slowed = step_bounds(slowed.graph.graph, slowed.times, step).time,
                   .steps = {}};
  }
  s.replicas.emplace(std::move(priced), std::move(nominal));
  return s;
}

Simulation simulate_ranks(const Job& job, const SimulateFlags& flags) {
  Simulation s{.prediction = predict(training_job(job, flags))};
  if (varies_steps(flags.variation))
    s.variation = vary_steps(flags.variation,
                             {s.prediction.graph, s.prediction.prices,
                              job_facts(job.file.plan.strategy, job.model, job.cluster).step},
                             s.prediction.evaluation.step_time);
  return s;
}

Simulation simulate_job(const Job& job, const SimulateFlags& flags) {
  const Strategy& strategy = job.file.plan.strategy;
  const auto failures =
      failure_model(flags.failures, static_cast<int>(rank_count(strategy.degrees)));
  const auto interval = checkpoint_interval(flags.failures);
  Simulation s =
      simulates_replicas(flags) ? simulate_replicas(job, flags) : simulate_ranks(job, flags);
  s.failures = failures;
  s.checkpoint_interval = interval;
  s.trainer_problems = trainer_problems(job, flags.job);
  return s;
}

Timeline labeled_timeline_of(const SimulatedStep& s, const Job& job) {
  Timeline timeline = timeline_of(s.graph, s.times);
  timeline.provenance["program"] = "meshwright " MESHWRIGHT_VERSION;
  timeline.provenance["model"] = job.file.model_name;
  timeline.provenance["cluster"] = job.file.cluster_name;
  timeline.provenance["strategy"] = strategy_text(job.file.plan.strategy);
  timeline.provenance["cost model"] = job.cost_model->provenance();
  return timeline;
}

/// Of the predicted step, or of as many steps as asked for.
Timeline timeline_of(const Simulation& s, const Job& job, const SimulateFlags& flags) {
  if (!flags.steps && s.replicas)
    return labeled_timeline_of(step_of_all_ranks(s.replicas->first, s.replicas->second), job);
  if (!flags.steps) return labeled_timeline_of(s.prediction, job);
  TrainingJob longer = training_job(job, flags);
  longer.steps = *flags.steps;
  return labeled_timeline_of(simulate_step(longer), job);
}

std::string json_text(const Job& job, const PlanFigures& figures, const Simulation& s,
                      const std::string& validation, const std::string& timeline_file) {
  Json json{{"schema", 1},
            {"model", job.file.model_name},
            {"cluster", job.file.cluster_name},
            {"trainer", job.trainer.name},
            {"gpus", rank_count(job.file.plan.strategy.degrees)}};
  json.update(Json::parse(to_json(figures)));
  json["fits"] = fits_in_memory(s.prediction.evaluation);
  json["blocks_per_stage"] = job.file.plan.blocks_per_stage;
  json.update(Json::parse(ranks_json(s.prediction.graph.ranks, s.prediction.evaluation)));
  json.update(Json::parse(variation_json(s.variation, s.failures, s.checkpoint_interval)));
  const std::int64_t ranks = rank_count(job.file.plan.strategy.degrees);
  json["used_devices_per_node"] = used_devices_per_node(job.cluster, ranks).value_or(0);
  json["cost_model"] = job.cost_model->provenance();
  json["validation"] = validation;
  json["trainer_problems"] = Json::parse(problems_json(s.trainer_problems));
  json["timeline"] = timeline_file.empty() ? Json() : Json(timeline_file);
  constexpr int kIndent = 2;
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

Document human_text(const Job& job, const Simulation& s, const PlanFigures& figures,
                    const std::string& validation) {
  const Strategy& strategy = job.file.plan.strategy;
  const std::int64_t ranks = rank_count(strategy.degrees);
  Document text = fmt::format("{} on {}: {} GPUs, global batch size {}, sequence length {}\n",
                              job.file.model_name, job.file.cluster_name, ranks,
                              strategy.global_batch, strategy.sequence_length);
  text += fmt::format("{}{}\n\n", partial_nodes_text(job.cluster, ranks), strategy_text(strategy));
  text += figures_list(figures);
  text += "\nStep time breakdown, mean over all ranks:\n";
  text += step_parts_text(s.prediction.evaluation);
  text += "\nPeak memory:\n";
  text += indented(memory_table(s.prediction.graph.ranks, s.prediction.evaluation));
  if (s.variation) text += variation_text(*s.variation);
  if (s.failures)
    text += goodput_text(*s.failures, s.checkpoint_interval, s.prediction.evaluation.step_time);
  text += "\n" + cost_model_text(job.cost_model->provenance(), validation);
  text += trainer_notes(s.trainer_problems);
  if (!fits_in_memory(s.prediction.evaluation))
    text += "Out of memory: peak memory exceeds the memory of the device.\n";
  return text;
}

CLI::App* add_simulate_command(CLI::App& app, SimulateFlags& flags) {
  CLI::App* command =
      app.add_subcommand("simulate", "Predict the time and memory of a training step.");
  add_job_flags(*command, flags.job);
  {
    const OptionGroup group(*command, "Simulation");
    command->add_flag("--all-ranks", flags.all_ranks,
                      "simulate every rank instead of one representative per pipeline rank");
    command->add_flag("--contention", flags.contention,
                      "model contention on shared links (implies --all-ranks)");
    add_count(*command, "--steps", flags.steps, {1, 100'000},
              "steps in the timeline of a flushless schedule, as in run --steps");
  }
  add_variation_flags(*command, flags.variation);
  add_failure_flags(*command, flags.failures);
  {
    const OptionGroup group(*command, "Regression file");
    add_value(*command, "--write-watch", flags.range_file, "FILE",
              "write the range of the predicted step time to FILE (JSON), for --watch of run and "
              "compare");
    add_value(*command, "--tolerance", flags.tolerance, "RATIO",
              "range of --write-watch around the prediction, such as 10% (default: p10 to p90 of "
              "similar published runs)");
  }
  add_report_flags(*command, flags.output, "the timeline (Perfetto trace)");
  command->footer(
      "The file of --write-watch has the keys schema, model, strategy, step_time (predicted_ns,\n"
      "lowest_ns, highest_ns) and source.\n"
      "\n"
      "Examples:\n"
      "  meshwright simulate best.plan.json -o best.pftrace\n"
      "  meshwright simulate best.plan.json --write-watch step.range.json --tolerance 10%\n"
      "  meshwright simulate --model gpt2 --cluster dgx-a100 --gpus 16 --tp 2 --pp 4 \\\n"
      "      --global-batch 64 --seq 1024");
  return command;
}

Outcome run_simulate(const SimulateFlags& flags) {
  if (flags.contention && !flags.variation.jitter.empty())
    throw UsageError({.where = "--contention",
                      .what = "cannot be combined with '--jitter'",
                      .hint = "remove one of them"});
  if (!flags.tolerance.empty() && flags.range_file.empty())
    refuse_flag("--tolerance", "requires '--write-watch'", "set the file to write");
  std::optional<double> tolerance;
  if (!flags.tolerance.empty()) tolerance = parse_positive_share("--tolerance", flags.tolerance);
  const Job job = load_job(flags.job);
  if (flags.steps && !updates_without_flush(job.file.plan.strategy))
    throw UsageError({.where = "--steps",
                      .what = fmt::format("requires a flushless schedule, not '{}'",
                                          job.file.plan.strategy.schedule),
                      .hint = "remove it: all steps of this schedule are the same"});
  stop_if_interrupted();
  const Simulation s = simulate_job(job, flags);
  if (!s.variation) stop_if_interrupted();
  const std::string why = job.file.predicted ? job.file.predicted->why : "";
  PlanFigures figures = figures_of(job.file.plan.strategy, s.prediction.evaluation, why);
  const std::optional<ErrorBar>& bar = s.prediction.error_bar;
  figures.range = range_of(figures.step_time, bar);
  const std::string validation = validation_text(bar, *job.cost_model);
  if (!flags.range_file.empty())
    write_file(flags.range_file, to_json(step_range_of(job.file.model_name, figures, tolerance)));
  const std::string& file = flags.output.file;
  Outcome outcome;
  if (file != "-")  // else standard output is the timeline
    outcome = outcome_of(flags.output.json ? json_text(job, figures, s, validation, file)
                                           : human_text(job, s, figures, validation),
                         flags.output);
  if (!file.empty()) write_file(file, to_pftrace(timeline_of(s, job, flags)));
  if (s.variation && is_interrupted()) {
    outcome.exit_code = kExitInterrupted;
    outcome.notes += fmt::format("interrupted after {} samples\n", s.variation->steps.size());
  }
  return outcome;
}

}  // namespace

Command simulate_command(CLI::App& app) {
  return make_command(app, add_simulate_command, run_simulate);
}

}  // namespace meshwright
