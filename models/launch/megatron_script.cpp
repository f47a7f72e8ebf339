#include <fmt/format.h>

#include "models/launch/export_formats.hpp"
#include "models/launch/megatron.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kVersion = "Megatron-LM core_v0.19.0";
constexpr int kPort = 29500;

std::string arrays_text(const MegatronJob& megatron) {
  std::string text;
  for (const MegatronJob::Group& group : megatron.groups) {
    text += group.name + "=(\n";
    for (const LaunchFlag& flag : group.flags) text += fmt::format("  {}\n", to_text(flag));
    text += ")\n";
  }
  return text;
}

std::string exports_text(const MegatronJob& megatron) {
  std::string text;
  for (const auto& [name, value] : megatron.environment)
    text += fmt::format("export {}={}\n", name, value);
  return text + (text.empty() ? "" : "\n");
}

/// pretrain_gpt.py with all arrays, and with what the script is given.
std::string program_text(const MegatronJob& megatron) {
  std::string text = "pretrain_gpt.py";
  for (const MegatronJob::Group& group : megatron.groups)
    text += fmt::format(" \\\n  \"${{{}[@]}}\"", group.name);
  return text + " \"$@\"\n";
}

std::string comments(const LaunchJob& job, const MegatronJob& megatron,
                     const std::string& how_to_start) {
  return fmt::format(
      "# {}\n# {}, on mock data for {} steps; further options are appended to the command.\n"
      "# In the folder of Megatron-LM: {}\n{}",
      headline(job), kVersion, kExportedSteps, how_to_start,
      unsupported_comments(megatron.unsupported));
}

}  // namespace

LaunchText megatron_script(const LaunchJob& job) {
  const MegatronJob megatron = megatron_job(job);
  const bool is_single = job.nodes == 1;
  const std::string nodes = is_single ? "  --standalone\n"
                                      : fmt::format(
                                            "  --nnodes {}\n  --node-rank \"$NODE_RANK\"\n"
                                            "  --master-addr \"$MASTER_ADDR\"\n"
                                            "  --master-port \"${{MASTER_PORT:-{}}}\"\n",
                                            job.nodes, kPort);
  const std::string start =
      is_single ? "bash FILE"
                : fmt::format("on every node NODE_RANK=0…{} MASTER_ADDR=FIRST_NODE bash FILE",
                              job.nodes - 1);
  return {fmt::format("#!/bin/bash\n{}set -euo pipefail\n\n{}"
                      "TORCHRUN_ARGS=(\n{}  --nproc-per-node {}\n)\n{}\n"
                      "torchrun \"${{TORCHRUN_ARGS[@]}}\" {}",
                      comments(job, megatron, start), exports_text(megatron), nodes,
                      job.ranks_per_node, arrays_text(megatron), program_text(megatron)),
          megatron.unsupported};
}

LaunchText slurm_script(const LaunchJob& job) {
  const MegatronJob megatron = megatron_job(job);
  const std::string head = fmt::format(
      "#!/bin/bash\n#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n",
      job.model.name, job.nodes, job.ranks_per_node);
  return {
      fmt::format("{}{}set -euo pipefail\n\n{}"
                  "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                  "TORCHRUN_ARGS=(\n  --nnodes {}\n  --nproc-per-node {}\n"
                  "  --rdzv-id \"$SLURM_JOB_ID\"\n  --rdzv-backend c10d\n"
                  "  --rdzv-endpoint \"$MASTER_ADDR:{}\"\n)\n{}\n"
                  "srun torchrun \"${{TORCHRUN_ARGS[@]}}\" {}",
                  head, comments(job, megatron, "sbatch FILE"), exports_text(megatron), job.nodes,
                  job.ranks_per_node, kPort, arrays_text(megatron), program_text(megatron)),
      megatron.unsupported};
}

}  // namespace meshwright
