/// Translates a plan into the flags or configuration of other trainers, so that they parallelize
/// the model the same way. What a trainer does not support is listed separately. Of the model, only
/// the number of layers is written: export_launch.hpp writes whole launches.
///
/// Flags and keys are those of one version of each trainer:
///   Megatron-LM core_v0.19.0 (2026-08-19)
///   torchtitan  v0.2.2 (2026-02-20), the last version with TOML files
///   DeepSpeed   0.19.8
/// `./dev check-launches` parses the output with their own parsers. It has not been run on GPUs.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.hpp"
#include "core/trainer/launch_target.hpp"

namespace meshwright {

struct LaunchText {
  std::string text;  ///< command-line flags, a TOML file or a JSON file; ends with a newline
  std::vector<std::string> unsupported;  ///< settings of the plan that the trainer does not support
  friend bool operator==(const LaunchText&, const LaunchText&) = default;
};

/// The plan must pass check_plan().
LaunchText launch_text(LaunchTarget target, const Plan& plan);

}  // namespace meshwright
