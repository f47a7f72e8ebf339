/// One writer per program, for the table in export_launch.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/launch/launch_job.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright {

LaunchText megatron_script(const LaunchJob& job);
LaunchText slurm_script(const LaunchJob& job);
LaunchText megatron_bridge_recipe(const LaunchJob& job);
LaunchText torchtitan_job(const LaunchJob& job);
LaunchText deepspeed_configuration(const LaunchJob& job);
LaunchText accelerate_configuration(const LaunchJob& job);
LaunchText pytorch_schedule_csv(const LaunchJob& job);

std::vector<std::string> accelerate_refusals(const Plan& plan);
std::vector<std::string> pytorch_csv_refusals(const Plan& plan);

/// "# Not expressible: zero level 2\n", one line each.
std::string unsupported_comments(const std::vector<std::string>& unsupported);
/// "torchrun --nnodes 8 --nproc-per-node 8 …", with MASTER_ADDR and NODE_RANK for several nodes.
std::string torchrun_text(const LaunchJob& job, std::string_view program);

}  // namespace meshwright
