#include "cli/run/training_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/hash.hpp"
#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kText = "text";

/// The shortest text that reads back as the same number.
std::string text_of(float value) { return fmt::format("{}", value); }

}  // namespace

std::string text_hash(const TokenText& text) {
  constexpr std::int64_t kBlocks = 64, kTokensPerBlock = 64;
  const std::int64_t tokens = text.size();
  std::uint64_t hash = fnv1a_next(kFnv1aStart, static_cast<std::uint64_t>(tokens));
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    const std::int64_t first = tokens * block / kBlocks;
    for (std::int64_t i = first; i < std::min(first + kTokensPerBlock, tokens); ++i)
      hash = fnv1a_next(hash, static_cast<std::uint64_t>(text.at(i)));
  }
  return fmt::format("{:016x}", hash);
}

std::map<std::string, std::string> training_settings(const TrainingOptions& options,
                                                     OptimizerKind optimizer,
                                                     const TokenText& text) {
  const RateSchedule& schedule = options.rate_schedule;
  std::map<std::string, std::string> settings{
      {std::string(kText), text_hash(text)},
      {"shuffle", text.shuffle_seed ? "on" : "off"},
      {"optimizer", std::string(name_of(optimizer))},
      {"lr", text_of(options.learning_rate)},
      {"lr-schedule", std::string(name_of(schedule.decay))},
      {"warmup", std::to_string(schedule.warmup)},
      {"weight-decay", text_of(options.weight_decay)},
      {"no-decay-norm-and-bias", options.decays_norms_and_biases ? "off" : "on"},
      {"clip", text_of(options.gradient_clip)}};
  if (optimizer != OptimizerKind::kSgd) {
    settings["betas"] = fmt::format("{},{}", options.beta1, options.beta2);
    settings["eps"] = text_of(options.epsilon);
  }
  if (optimizer != OptimizerKind::kAdamW) settings["momentum"] = text_of(options.momentum);
  if (schedule.decay != RateDecay::kConstant) {
    settings["min-lr"] = text_of(schedule.minimum);
    settings["total-steps"] = std::to_string(schedule.total);
  }
  if (schedule.decay == RateDecay::kWsd)
    settings["lr-decay"] = std::to_string(schedule.final_steps);
  return settings;
}

std::string settings_warnings(const std::map<std::string, std::string>& saved,
                              const std::map<std::string, std::string>& now) {
  std::string warnings;
  for (const auto& [name, value] : now) {
    const auto before = saved.find(name);
    if (before == saved.end() || before->second == value) continue;
    warnings += name == kText
                    ? "warning: --resume: the training text differs from that of the checkpoint\n"
                    : fmt::format("warning: --{} is {}, but the checkpoint was saved with {}\n",
                                  name, value, before->second);
  }
  return warnings;
}

}  // namespace meshwright
