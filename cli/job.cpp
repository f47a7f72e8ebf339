#include "cli/job.hpp"

#include <CLI/CLI.hpp>

#include "core/io_file.hpp"
#include "models/load.hpp"
#include "models/this_machine.hpp"
#include "planner/search.hpp"
#include "simulator/calibrated_cost_model.hpp"
#include "simulator/device_cost_model.hpp"

namespace meshwright {
namespace {

Job job_from_file(const std::string& path, const std::string& calibration_file) {
  const std::string where = path == "-" ? "standard input" : path;
  Job job;
  job.file = plan_file_from_json(read_file(path), where);
  job.model = model_from_config({.name = job.file.model_name,
                                 .where = where + "#/model/config",
                                 .text = job.file.model_config});
  job.cluster = cluster_from_toml({.name = job.file.cluster_name,
                                   .where = where + "#/cluster/toml",
                                   .text = job.file.cluster_toml});
  const std::vector<Diagnostic> problems =
      check_plan(job.file.plan, job.model, job.cluster, where + "#/strategy/");
  if (!problems.empty()) throw InputError(problems);
  // The flag comes first; files of earlier versions do not say what their machine was measured as.
  const bool embeds = !job.file.calibration.empty() && calibration_file.empty();
  const std::optional<Calibration> calibration =
      embeds ? calibration_from_json(job.file.calibration, where + "#/cluster/calibration")
             : calibration_for(job.cluster, calibration_file);
  job.cost_model = make_cost_model(job.cluster, calibration);
  return job;
}

/// Cut by hand if that was said.
Plan plan_of(const StrategyFlags& flags, const Strategy& strategy, const Job& job) {
  if (flags.blocks_per_stage.empty() && flags.device_of_stage.empty())
    return complete_plan(strategy, job.model, job.cluster, *job.cost_model);
  Plan plan;
  plan.strategy = strategy;
  plan.blocks_per_stage = flags.blocks_per_stage;
  plan.device_of_stage = flags.device_of_stage;
  if (auto problems = check_plan(plan, job.model, job.cluster); !problems.empty())
    throw InputError(std::move(problems));
  return plan;
}

Job job_from_flags(const JobFlags& flags) {
  const Strategy strategy = to_strategy(flags.strategy, flags.gpus);
  const NamedText model = find_model(flags.model);
  const NamedText cluster = find_cluster(flags.cluster, flags.calibration);
  Job job;
  job.model = model_from_config(model);
  job.cluster = cluster_from_toml(cluster);
  const std::optional<Calibration> calibration = calibration_for(job.cluster, flags.calibration);
  job.cost_model = make_cost_model(job.cluster, calibration);
  job.file = {.model_name = model.name,
              .model_config = model.text,
              .cluster_name = cluster.name,
              .cluster_toml = cluster.text,
              .plan = plan_of(flags.strategy, strategy, job),
              .predicted = std::nullopt,
              .cost_model = job.cost_model->provenance(),
              .calibration = text_of(calibration)};
  const std::vector<Diagnostic> problems = check_plan(job.file.plan, job.model, job.cluster);
  if (!problems.empty()) throw InputError(problems);
  return job;
}

}  // namespace

void add_calibration_flag(CLI::App& app, std::string& calibration_file) {
  app.add_option("--calibration", calibration_file,
                 "measured kernels and collectives, as `calibrate` and `import` write them")
      ->type_name("FILE");
}

NamedText find_cluster(const std::string& name, const std::string& calibration_file) {
  if (name != kThisMachine || calibration_file.empty()) return find_cluster(name);
  const Calibration calibration =
      calibration_from_json(read_file(calibration_file), calibration_file);
  if (!calibration.machine)
    throw InputError({calibration_file, "says nothing of a machine: it is not of this-machine",
                      "name the cluster that it was measured on, or run `meshwright calibrate`"});
  return this_machine_cluster(calibration);
}

std::optional<Calibration> calibration_for(const Cluster& cluster,
                                           const std::string& calibration_file) {
  if (!calibration_file.empty())
    return calibration_from_json(read_file(calibration_file), calibration_file);
  if (cluster.name != kThisMachine) return std::nullopt;
  return this_machine_calibration();
}

std::unique_ptr<CostModel> make_cost_model(const Cluster& cluster,
                                           const std::optional<Calibration>& calibration) {
  std::unique_ptr<CostModel> by_figures = make_device_cost_model(cluster);
  if (!calibration) return by_figures;
  return make_calibrated_cost_model(std::move(by_figures), *calibration);
}

std::string text_of(const std::optional<Calibration>& calibration) {
  return calibration ? to_json(*calibration) : "";
}

void add_job_flags(CLI::App& app, JobFlags& flags) {
  app.add_option("plan", flags.plan_file, "a plan file, or - for standard input")
      ->type_name("FILE");
  app.add_option("--model", flags.model, "preset name or config.json")->type_name("NAME|FILE");
  app.add_option("--cluster", flags.cluster, "preset name or cluster.toml")->type_name("NAME|FILE");
  add_calibration_flag(app, flags.calibration);
  add_count(app, "--gpus", flags.gpus, kGpuRange, "devices of the job; --dp takes what is left");
  add_batch_flags(app, flags.strategy);
  add_choice_flags(app, flags.strategy.choices);
  add_placement_flags(app, flags.strategy);
}

Job load_job(const JobFlags& flags) {
  const bool by_flags =
      !flags.model.empty() || !flags.cluster.empty() || flags.gpus || is_any_given(flags.strategy);
  if (!flags.plan_file.empty() && by_flags) {
    throw UsageError({.where = "command line",
                      .what = "a plan file and flags that describe a job were both given",
                      .hint = "the plan file says it all: leave out the flags, or the file"});
  }
  if (!flags.plan_file.empty()) return job_from_file(flags.plan_file, flags.calibration);
  for (const auto& [flag, value] :
       {std::pair("--model", &flags.model), std::pair("--cluster", &flags.cluster)}) {
    if (value->empty()) {
      throw UsageError({.where = flag,
                        .what = "is needed and was not given",
                        .hint = "give a plan file, or --model, --cluster and strategy flags"});
    }
  }
  return job_from_flags(flags);
}

}  // namespace meshwright
