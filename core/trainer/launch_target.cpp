#include "core/trainer/launch_target.hpp"

#include <array>

namespace meshwright {

std::string_view word_of(LaunchTarget target) {
  constexpr std::array<std::string_view, kLaunchTargetCount> kWords{"megatron", "torchtitan",
                                                                    "deepspeed"};
  return kWords[static_cast<std::size_t>(target)];
}

std::optional<LaunchTarget> launch_target_from_word(std::string_view word) {
  for (int t = 0; t < kLaunchTargetCount; ++t)
    if (word_of(static_cast<LaunchTarget>(t)) == word) return static_cast<LaunchTarget>(t);
  return std::nullopt;
}

std::vector<std::string> launch_words() {
  std::vector<std::string> words;
  words.reserve(kLaunchTargetCount);
  for (int t = 0; t < kLaunchTargetCount; ++t)
    words.emplace_back(word_of(static_cast<LaunchTarget>(t)));
  return words;
}

std::string_view name_of(LaunchTarget target) {
  constexpr std::array<std::string_view, kLaunchTargetCount> kNames{
      "Megatron-LM core_v0.19.0", "torchtitan v0.2.2", "DeepSpeed 0.19.8"};
  return kNames[static_cast<std::size_t>(target)];
}

}  // namespace meshwright
