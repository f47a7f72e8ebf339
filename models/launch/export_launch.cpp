#include "models/launch/export_launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/trainer/trainer.hpp"
#include "core/trainer/trainer_abilities.hpp"
#include "models/launch/export_formats.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"

namespace meshwright {
namespace {

/// Gaps that change the time of a step, but neither what is computed where nor how much memory it
/// takes: they are notes of the exported launch.
bool is_minor(const TrainerGap& gap) {
  switch (gap.ability) {
    case Ability::kBuckets:
    case Ability::kAttention:
    case Ability::kGradientDtypes:
      return true;
    case Ability::kOptions:
      return gap.word != "stage-devices" && gap.word != "offload-optimizer" &&
             gap.word != "shard-ranks" && gap.word != "layer-options" && gap.word != "batch-shares";
    default:
      return false;
  }
}

}  // namespace

const std::vector<ExportTarget>& export_targets() {
  static const std::vector<ExportTarget> kTargets{
      {.word = "megatron",
       .name = "Megatron-LM core_v0.19.0",
       .help = "shell script with torchrun and pretrain_gpt.py",
       .trainer = "megatron-core",
       .write = megatron_script},
      {.word = "megatron-bridge",
       .name = "Megatron-Bridge 0.3.1",
       .help = "Python recipe of Megatron-Bridge (NeMo)",
       .trainer = "megatron-core",
       .write = megatron_bridge_recipe},
      {.word = "torchtitan",
       .name = "torchtitan v0.2.2",
       .help = "job file (TOML)",
       .trainer = "torchtitan",
       .write = torchtitan_job},
      {.word = "deepspeed",
       .name = "DeepSpeed 0.19.8",
       .help = "configuration (JSON) for a training script of your own",
       .trainer = "megatron-deepspeed",
       .write = deepspeed_configuration},
      {.word = "accelerate",
       .name = "accelerate 1.15.0",
       .help = "configuration (YAML) of accelerate launch, with FSDP2",
       .refusals = accelerate_refusals,
       .write = accelerate_configuration},
      {.word = "pytorch-csv",
       .name = "torch.distributed.pipelining",
       .help = "order of the pipeline schedule (CSV)",
       .refusals = pytorch_csv_refusals,
       .write = pytorch_schedule_csv},
      {.word = "slurm",
       .name = "Megatron-LM core_v0.19.0",
       .help = "batch script for sbatch that starts Megatron-LM",
       .trainer = "megatron-core",
       .write = slurm_script}};
  return kTargets;
}

const ExportTarget* find_export_target(std::string_view word) {
  const auto& targets = export_targets();
  const auto found = std::ranges::find(targets, word, &ExportTarget::word);
  return found == targets.end() ? nullptr : &*found;
}

std::vector<Diagnostic> export_problems(const ExportTarget& target, const Plan& plan,
                                        std::string_view where) {
  std::vector<Diagnostic> problems;
  if (target.refusals != nullptr)
    for (std::string& reason : target.refusals(plan))
      problems.push_back({.where = std::string(where),
                          .what = fmt::format("{} {}", target.name, reason),
                          .hint = "export to another program"});
  if (target.trainer.empty()) return problems;
  const Trainer trainer = trainer_from_toml(find_trainer(std::string(target.trainer)));
  std::vector<TrainerGap> gaps = trainer_gaps(trainer.abilities, plan);
  std::erase_if(gaps, is_minor);
  for (Diagnostic& problem : problems_of(gaps, target.name, where)) {
    problem.hint = fmt::format("search with 'plan --trainer {}', or export to another program",
                               target.trainer);
    problems.push_back(std::move(problem));
  }
  return problems;
}

LaunchText export_launch(const ExportTarget& target, const LaunchJob& job) {
  return target.write(job);
}

std::string unsupported_comments(const std::vector<std::string>& unsupported) {
  std::string text;
  for (const std::string& one : unsupported) text += fmt::format("# Not expressible: {}\n", one);
  return text;
}

std::string torchrun_text(const LaunchJob& job, std::string_view program) {
  const std::string nodes = job.nodes == 1
                                ? "--standalone"
                                : fmt::format(
                                      "--nnodes {} --node-rank \"$NODE_RANK\" --master-addr "
                                      "\"$MASTER_ADDR\"",
                                      job.nodes);
  return fmt::format("torchrun {} --nproc-per-node {} {}", nodes, job.ranks_per_node, program);
}

}  // namespace meshwright
