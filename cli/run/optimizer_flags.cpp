#include "cli/run/optimizer_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "cli/flags/choice_flag.hpp"
#include "cli/flags/help_formatter.hpp"
#include "cli/flags/real_flag.hpp"
#include "cli/flags/strategy_flags.hpp"
#include "core/base/error.hpp"

namespace meshwright {
namespace {

constexpr RealRange kRateRange{.smallest = 0, .largest = 1000};
constexpr RealRange kBetaRange{.smallest = 0, .largest = 1, .excludes_largest = true};
constexpr RealRange kEpsilonRange{.smallest = 0, .largest = 1, .excludes_smallest = true};
constexpr RealRange kWeightDecayRange{.smallest = 0, .largest = 1000};
constexpr RealRange kClipRange{.smallest = 0, .largest = 1e9};
constexpr CountRange kStepRange{.smallest = 0, .largest = 1'000'000'000};
constexpr int kWsdDecayShare = 10;  ///< a tenth of the steps, as MiniCPM (arXiv 2404.06395)

std::pair<double, double> betas_from_text(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos)
    throw UsageError({.where = "--betas",
                      .what = fmt::format("invalid value '{}': expected two numbers", text),
                      .hint = "separate them by a comma, for example --betas 0.9,0.95"});
  return {parse_real("--betas", text.substr(0, comma), kBetaRange),
          parse_real("--betas", text.substr(comma + 1), kBetaRange)};
}

void require(bool holds, const char* flag, const char* needed) {
  if (!holds)
    throw UsageError({.where = flag,
                      .what = fmt::format("requires '{}'", needed),
                      .hint = fmt::format("add {}, or remove {}", needed, flag)});
}

RateSchedule schedule_of(const OptimizerFlags& flags, const TrainingOptions& options,
                         std::int64_t total_steps) {
  RateSchedule schedule{.decay = flags.schedule.value_or(RateDecay::kConstant),
                        .warmup = flags.warmup.value_or(0),
                        .total = total_steps,
                        .minimum = static_cast<float>(flags.min_rate.value_or(0))};
  if (schedule.decay == RateDecay::kWsd)
    schedule.final_steps = flags.decay_steps.value_or(
        static_cast<int>((total_steps + kWsdDecayShare - 1) / kWsdDecayShare));
  if (schedule.warmup + schedule.final_steps > total_steps)
    throw InputError(
        Diagnostic{flags.warmup ? "--warmup" : "--lr-decay",
                   fmt::format("{} steps of warm-up and {} of decay exceed {} training steps",
                               schedule.warmup, schedule.final_steps, total_steps),
                   "use fewer of them, or set a larger --steps or --total-steps"});
  if (schedule.minimum > options.learning_rate)
    throw InputError(Diagnostic{
        "--min-lr",
        fmt::format("{} is above the learning rate of {}", schedule.minimum, options.learning_rate),
        "use a smaller --min-lr, or a larger --lr"});
  return schedule;
}

void add_rate_flags(CLI::App& command, OptimizerFlags& flags) {
  add_real(command, "--lr", flags.rate, kRateRange, "peak learning rate (default: 0.001)");
  add_choice(command, "--lr-schedule", flags.schedule, rate_decay_from_name,
             {"constant", "linear", "cosine", "wsd"},
             "decay of the learning rate over the training; wsd: linear in the last steps only "
             "(default: constant)");
  add_count(command, "--warmup", flags.warmup, kStepRange,
            "steps in which the learning rate grows linearly to its peak (default: 0)");
  add_count(command, "--lr-decay", flags.decay_steps, kStepRange,
            "--lr-schedule wsd: number of last steps in which the learning rate decays (default: "
            "a tenth of the steps)");
  add_real(command, "--min-lr", flags.min_rate, kRateRange,
           "learning rate at the end of its decay (default: 0)");
}

}  // namespace

void add_optimizer_flags(CLI::App& command, OptimizerFlags& flags) {
  const OptionGroup group(command, "Optimizer");
  add_rate_flags(command, flags);
  command
      .add_option_function<std::string>(
          "--betas", [&flags](const std::string& text) { flags.betas = betas_from_text(text); },
          "--optimizer adamw, muon: decay rates of the moments (default: 0.9,0.95)")
      ->type_name("B1,B2");
  add_real(command, "--eps", flags.epsilon, kEpsilonRange,
           "--optimizer adamw, muon: term of the denominator (default: 1e-8)");
  add_real(command, "--momentum", flags.momentum, kBetaRange,
           "--optimizer sgd, muon: momentum (default: 0.9, with muon 0.95)");
  add_real(command, "--weight-decay", flags.weight_decay, kWeightDecayRange,
           "weight decay, decoupled except with sgd (default: 0.1)");
  command.add_flag("--no-decay-norm-and-bias", flags.no_decay_norm_and_bias,
                   "no weight decay of norms and biases");
  add_real(command, "--clip", flags.clip, kClipRange,
           "maximum global norm of the gradients; 0: no clipping (default: 1)");
}

void check_optimizer_flags(const OptimizerFlags& flags, OptimizerKind optimizer) {
  const bool is_sgd = optimizer == OptimizerKind::kSgd;
  require(!is_sgd || !flags.betas, "--betas", "--optimizer adamw");
  require(!is_sgd || !flags.epsilon, "--eps", "--optimizer adamw");
  require(optimizer != OptimizerKind::kAdamW || !flags.momentum, "--momentum", "--optimizer sgd");
  const RateDecay decay = flags.schedule.value_or(RateDecay::kConstant);
  require(decay == RateDecay::kWsd || !flags.decay_steps, "--lr-decay", "--lr-schedule wsd");
  if (decay == RateDecay::kConstant && flags.min_rate)
    throw UsageError({.where = "--min-lr",
                      .what = "has no effect with '--lr-schedule constant'",
                      .hint = "add --lr-schedule cosine, or remove --min-lr"});
}

TrainingOptions training_options(const OptimizerFlags& flags, OptimizerKind optimizer,
                                 std::int64_t total_steps) {
  constexpr float kMuonMomentum = 0.95F;  // of the reference implementation
  TrainingOptions options;
  if (optimizer == OptimizerKind::kMuon) options.momentum = kMuonMomentum;
  const auto set = [](float& option, const std::optional<double>& flag) {
    if (flag) option = static_cast<float>(*flag);
  };
  set(options.learning_rate, flags.rate);
  if (flags.betas) {
    set(options.beta1, flags.betas->first);
    set(options.beta2, flags.betas->second);
  }
  set(options.epsilon, flags.epsilon);
  set(options.momentum, flags.momentum);
  set(options.weight_decay, flags.weight_decay);
  options.decays_norms_and_biases = !flags.no_decay_norm_and_bias;
  set(options.gradient_clip, flags.clip);
  if (options.gradient_clip == 0) options.gradient_clip = std::numeric_limits<float>::infinity();
  options.rate_schedule = schedule_of(flags, options, total_steps);
  return options;
}

}  // namespace meshwright
