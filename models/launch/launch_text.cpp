#include "models/launch/launch_text.hpp"

#include <fmt/format.h>

#include "models/launch/launch_settings.hpp"

namespace meshwright {
namespace {

LaunchText megatron_flags(const Plan& plan) {
  MegatronSettings settings = megatron_settings(plan);
  std::vector<std::string> lines;
  const auto add = [&lines](const std::vector<LaunchFlag>& flags) {
    for (const LaunchFlag& flag : flags) lines.push_back(to_text(flag));
  };
  add(settings.parallelism);
  add(settings.memory);
  lines.push_back(fmt::format("--num-layers {}", layer_count(plan)));
  add(settings.batch);
  if (settings.uses_fsdp)
    settings.unsupported.emplace_back(
        "environment variables (Megatron-FSDP: CUDA_DEVICE_MAX_CONNECTIONS must not be 1)");
  return {fmt::format("# {}, {} ranks\n{}\n", name_of(LaunchTarget::kMegatron),
                      rank_count(plan.strategy.degrees), fmt::join(lines, " \\\n")),
          std::move(settings.unsupported)};
}

LaunchText torchtitan_file(const Plan& plan) {
  TorchtitanSettings settings = torchtitan_settings(plan);
  if (!settings.quantization.empty())
    settings.unsupported.push_back(
        fmt::format("fp8 with recipe {} (trains in bf16 without a model converter)",
                    name_of(plan.strategy.precision.fp8_recipe)));
  return {fmt::format("# {}, {} ranks\n[parallelism]\n{}\n[training]\n{}\n"
                      "[activation_checkpoint]\n{}",
                      name_of(LaunchTarget::kTorchtitan), rank_count(plan.strategy.degrees),
                      settings.parallelism, settings.training, settings.activation_checkpoint),
          std::move(settings.unsupported)};
}

}  // namespace

LaunchText launch_text(LaunchTarget target, const Plan& plan) {
  switch (target) {
    case LaunchTarget::kMegatron:
      return megatron_flags(plan);
    case LaunchTarget::kTorchtitan:
      return torchtitan_file(plan);
    case LaunchTarget::kDeepSpeed:
      return deepspeed_settings(plan);
  }
  return {};
}

}  // namespace meshwright
