/// Training programs whose flags or configuration models/launch writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

enum class LaunchTarget : std::uint8_t { kMegatron, kTorchtitan, kDeepSpeed };
inline constexpr int kLaunchTargetCount = 3;
std::string_view word_of(LaunchTarget target);  ///< "megatron", "torchtitan", "deepspeed"
std::optional<LaunchTarget> launch_target_from_word(std::string_view word);
std::vector<std::string> launch_words();        ///< in the order of LaunchTarget
std::string_view name_of(LaunchTarget target);  ///< with the version: "Megatron-LM core_v0.19.0"

}  // namespace meshwright
