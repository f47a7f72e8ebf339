/// Megatron-LM core_v0.19.0: flags of a job. Facts: megatron/training/arguments.py, and
/// megatron/core/transformer/transformer_config.py, from whose fields most flags are generated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/launch/launch_job.hpp"
#include "models/launch/launch_settings.hpp"

namespace meshwright {

struct MegatronModel {
  std::vector<LaunchFlag> flags;
  std::vector<std::string> unsupported;
};
MegatronModel megatron_model(const LaunchJob& job);
/// Why Megatron-LM cannot build the model, or not with this plan (checks of TransformerConfig);
/// empty if it can.
std::string megatron_refusal(const LaunchJob& job);

/// "([0]*3+[1]*58)": a list of 0 and 1 by layer, as in --moe-layer-freq.
std::string layer_pattern(const std::vector<bool>& layers);

/// All flags of a job by heading, and the environment that they require.
struct MegatronJob {
  struct Group {
    std::string name;  ///< "MODEL_ARGS"
    std::vector<LaunchFlag> flags;
  };
  std::vector<Group> groups;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> unsupported;
};
/// InputError with the refusal, if there is one.
MegatronJob megatron_job(const LaunchJob& job);

/// Number of steps of an exported launch, on mock data.
inline constexpr int kExportedSteps = 20;

}  // namespace meshwright
