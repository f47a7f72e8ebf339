#include "cli/job/job.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/flags/help_formatter.hpp"
#include "cli/terminal/standard_streams.hpp"
#include "cli/validation/predict_runs.hpp"
#include "core/formats/file.hpp"
#include "core/lowering/lower.hpp"
#include "core/plan/placement.hpp"
#include "models/load/load.hpp"
#include "models/load/published_runs.hpp"
#include "models/load/this_machine.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/search/search.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

/// The embedded trainer, unless --trainer names another.
Trainer trainer_of(const PlanFile& file, const std::string& where, const Cluster& cluster,
                   const std::string& name) {
  if (file.trainer_toml.empty() || !name.empty()) return trainer_for(cluster, name);
  return trainer_from_toml(
      {.name = file.trainer_name, .where = where + "#/trainer/toml", .text = file.trainer_toml});
}

void embed(const Trainer& trainer, PlanFile& file) {
  file.trainer_name = trainer.name;
  file.trainer_toml = to_toml(trainer);
}

/// "SET#ID": a published run.
Job job_from_published_run(const std::string& name, const SourceFlags& sources) {
  const std::size_t mark = name.rfind('#');
  const PublishedSet set = published_set_from_toml(find_published_set(name.substr(0, mark)));
  const PublishedRun& run = find_run(set, name.substr(mark + 1));
  const NamedText& model = set.models[run.model];
  const NamedText& cluster = set.clusters[run.cluster];
  Job job;
  job.model = load_model_and_warn(model);
  job.cluster = cluster_from_toml(cluster);
  const std::optional<Calibration> calibration = calibration_for(job.cluster, sources.calibration);
  job.trainer = trainer_for(job.cluster, sources.trainer.empty() ? run.trainer : sources.trainer);
  job.cost_model = make_cost_model(job.cluster, job.trainer, calibration);
  job.file = {.model_name = model.name,
              .model_config = model.text,
              .cluster_name = cluster.name,
              .cluster_toml = cluster_to_toml(job.cluster),  // without references
              .plan = plan_of_run(run, job.model, job.cluster, *job.cost_model),
              .predicted = std::nullopt,
              .cost_model = job.cost_model->provenance(),
              .calibration = text_of(calibration)};
  embed(job.trainer, job.file);
  return job;
}

Job job_from_file(const std::string& path, const SourceFlags& sources) {
  const std::string& calibration_file = sources.calibration;
  const std::string where = path == "-" ? "standard input" : path;
  Job job;
  job.file = plan_file_from_json(read_file(path), where);
  job.model = load_model_and_warn({.name = job.file.model_name,
                                   .where = where + "#/model/config",
                                   .text = job.file.model_config});
  job.cluster = cluster_from_toml({.name = job.file.cluster_name,
                                   .where = where + "#/cluster/toml",
                                   .text = job.file.cluster_toml});
  throw_if_any(check_plan(job.file.plan, job.model, job.cluster, where + "#/"));
  // --calibration has precedence. Plan files of earlier versions do not embed a calibration.
  const bool embeds = !job.file.calibration.empty() && calibration_file.empty();
  const std::optional<Calibration> calibration =
      embeds ? calibration_from_json(job.file.calibration, where + "#/cluster/calibration")
             : calibration_for(job.cluster, calibration_file);
  job.trainer = trainer_of(job.file, where, job.cluster, sources.trainer);
  embed(job.trainer, job.file);
  job.cost_model = make_cost_model(job.cluster, job.trainer, calibration);
  return job;
}

std::vector<int> uniform_blocks_per_stage(const Strategy& strategy, const StageCut& cut,
                                          const Job& job) {
  // The placement is defined for valid strategies only: others are refused with their reasons.
  complete_plan(strategy, job.model, job.cluster, *job.cost_model);
  Plan plan;
  plan.strategy = strategy;
  return cut_uniformly(cut, block_count(job.model), placement_of(plan));
}

/// Uses the manual layer placement if one was given.
Plan plan_of(const StrategyFlags& flags, const Strategy& strategy, const Job& job) {
  const bool is_uniform = flags.stage_cut && flags.stage_cut->rule == StageCutRule::kUniform;
  if (!is_uniform && flags.blocks_per_stage.empty() && flags.device_of_stage.empty())
    return complete_plan(strategy, job.model, job.cluster, *job.cost_model);
  Plan plan;
  plan.strategy = strategy;
  plan.blocks_per_stage = flags.blocks_per_stage;
  if (is_uniform) plan.blocks_per_stage = uniform_blocks_per_stage(strategy, *flags.stage_cut, job);
  plan.device_of_stage = flags.device_of_stage;
  if (auto problems = check_plan(plan, job.model, job.cluster); !problems.empty())
    throw InputError(std::move(problems));
  return plan;
}

Job job_from_flags(const JobFlags& flags) {
  const Strategy strategy = to_strategy(flags.strategy, flags.gpus);
  return make_job(find_model(flags.sources.model), flags.sources,
                  [&](const Job& job) { return plan_of(flags.strategy, strategy, job); });
}

}  // namespace

Job make_job(const NamedText& model, const SourceFlags& sources,
             const std::function<Plan(const Job&)>& plan, std::string_view where) {
  Job job;
  job.model = load_model_and_warn(model);
  const NamedText cluster = find_cluster(sources.cluster, sources.calibration);
  job.cluster = cluster_from_toml(cluster);
  const std::optional<Calibration> calibration = calibration_for(job.cluster, sources.calibration);
  job.trainer = trainer_for(job.cluster, sources.trainer);
  job.cost_model = make_cost_model(job.cluster, job.trainer, calibration);
  job.file = {.model_name = model.name,
              .model_config = model.text,
              .cluster_name = cluster.name,
              .cluster_toml = cluster.text,
              .plan = plan(job),
              .predicted = std::nullopt,
              .cost_model = job.cost_model->provenance(),
              .calibration = text_of(calibration)};
  embed(job.trainer, job.file);
  throw_if_any(check_plan(job.file.plan, job.model, job.cluster, where));
  return job;
}

ModelGraph load_model_and_warn(const NamedText& config) {
  LoadedModel model = load_model(config);
  for (const Diagnostic& d : model.warnings) {
    print_to_stderr(fmt::format("warning: {}: {}\n", d.where, d.what));
    if (!d.hint.empty()) print_to_stderr(fmt::format("  hint: {}\n", d.hint));
  }
  return std::move(model.graph);
}

void add_source_flags(CLI::App& app, SourceFlags& sources) {
  const OptionGroup group(app, kSourceOptions);
  add_value(app, "--model", sources.model, "NAME|FILE", "model preset, or HuggingFace config.json");
  add_value(app, "--cluster", sources.cluster, "NAME|FILE", "cluster preset, or cluster.toml");
  add_value(app, "--trainer", sources.trainer, "NAME|FILE",
            "training program: preset of models/trainers, or trainer.toml (default: "
            "megatron-core)");
  add_calibration_flag(app, sources.calibration);
}

void add_calibration_flag(CLI::App& app, std::string& calibration_file) {
  add_value(app, "--calibration", calibration_file, "FILE",
            "measured kernels and collectives, written by 'calibrate' or 'import'");
}

NamedText find_cluster(const std::string& name, const std::string& calibration_file) {
  if (name != kThisMachine || calibration_file.empty()) return find_cluster(name);
  const Calibration calibration =
      calibration_from_json(read_file(calibration_file), calibration_file);
  if (!calibration.machine)
    throw InputError({calibration_file, "does not describe a machine: not usable for this-machine",
                      "set --cluster to the cluster it was measured on, or run 'meshwright "
                      "calibrate'"});
  return this_machine_cluster(calibration);
}

std::optional<Calibration> calibration_for(const Cluster& cluster,
                                           const std::string& calibration_file) {
  if (!calibration_file.empty())
    return calibration_from_json(read_file(calibration_file), calibration_file);
  if (cluster.name != kThisMachine) return std::nullopt;
  return this_machine_calibration();
}

Trainer trainer_for(const Cluster& cluster, const std::string& name) {
  const std::string& known = name.empty() ? std::string(default_trainer(cluster)) : name;
  return trainer_from_toml(find_trainer(known));
}

std::unique_ptr<CostModel> make_cost_model(const Cluster& cluster, const Trainer& trainer,
                                           const std::optional<Calibration>& calibration) {
  std::unique_ptr<CostModel> by_figures = make_device_cost_model(cluster, trainer);
  if (!calibration) return by_figures;
  return make_calibrated_cost_model(std::move(by_figures), *calibration);
}

std::string text_of(const std::optional<Calibration>& calibration) {
  return calibration ? to_json(*calibration) : "";
}

void add_job_flags(CLI::App& app, JobFlags& flags) {
  add_value(app, "plan", flags.plan_file, "FILE",
            "plan file, - for standard input, or SET#ID for a published run, instead of "
            "--model, --cluster and parallelism options");
  add_source_flags(app, flags.sources);
  {
    const OptionGroup group(app, kSourceOptions);
    add_count(app, "--gpus", flags.gpus, kGpuRange,
              "total number of GPUs (default: product of the parallel sizes)");
  }
  add_batch_flags(app, flags.strategy);
  add_choice_flags(app, flags.strategy.choices);
  add_placement_flags(app, flags.strategy);
}

Job load_job(const JobFlags& flags) {
  const bool by_flags = !flags.sources.model.empty() || !flags.sources.cluster.empty() ||
                        flags.gpus || is_any_given(flags.strategy);
  if (!flags.plan_file.empty() && by_flags) {
    throw UsageError({.where = "command line",
                      .what = "a plan file cannot be combined with options that describe a job",
                      .hint = "remove the options, or the plan file"});
  }
  if (names_published_run(flags.plan_file))
    return job_from_published_run(flags.plan_file, flags.sources);
  if (!flags.plan_file.empty()) {
    Job job = job_from_file(flags.plan_file, flags.sources);
    // The only choice that another one does not depend on.
    if (const auto& optimizer = flags.strategy.choices.optimizer)
      job.file.plan.strategy.optimizer = *optimizer;
    return job;
  }
  for (const auto& [flag, value] : {std::pair("--model", &flags.sources.model),
                                    std::pair("--cluster", &flags.sources.cluster)}) {
    if (value->empty()) {
      throw UsageError({.where = flag,
                        .what = "missing required option",
                        .hint = "give a plan file, or --model, --cluster and parallelism options"});
    }
  }
  return job_from_flags(flags);
}

}  // namespace meshwright
