/// A plan in the words of other trainers: what to give them so that they split the work as it says.
/// What they cannot be told is said beside it; nothing of the model but its number of layers.
///
/// Names of flags and keys are those of one version each, as listed once from its repository:
///   Megatron-LM core_v0.19.0 (2026-08-19)
///   torchtitan  v0.2.2 (2026-02-20): the last one with TOML files
///   DeepSpeed   edaa7221 (2026-08-22)
/// What flags ask for beside them, and the words that keys take, was compared with copies of
/// megatron/training/arguments.py, megatron_fsdp's README, torchtitan/config/job_config.py and
/// deepspeed/{__init__,runtime/config}.py, of 2025 and 2026 but not of exactly these versions. No
/// text was given to one of the programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.hpp"

namespace meshwright {

enum class LaunchTarget : std::uint8_t { kMegatron, kTorchtitan, kDeepSpeed };
inline constexpr int kLaunchTargetCount = 3;
std::string_view word_of(LaunchTarget target);  ///< "megatron", "torchtitan", "deepspeed"
std::string_view name_of(LaunchTarget target);  ///< with the version: "Megatron-LM core_v0.19.0"

struct LaunchText {
  std::string text;  ///< flags of a command line, a TOML file, a JSON file; ends with a line break
  std::vector<std::string> not_said;  ///< what of the plan it does not carry, one sentence each
  friend bool operator==(const LaunchText&, const LaunchText&) = default;
};

/// The plan must be sound (check_plan).
LaunchText launch_text(LaunchTarget target, const Plan& plan);

}  // namespace meshwright
