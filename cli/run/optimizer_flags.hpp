/// --lr and the other options of the optimizer and its learning rate.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/plan/optimizer.hpp"
#include "executor/ranks/training_options.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// The flags that were given; the others are empty.
struct OptimizerFlags {
  std::optional<RateDecay> schedule;
  std::optional<double> rate, min_rate, epsilon, weight_decay, momentum, clip;
  std::optional<std::pair<double, double>> betas;
  std::optional<int> warmup, decay_steps;
  bool no_decay_norm_and_bias = false;
};
void add_optimizer_flags(CLI::App& command, OptimizerFlags& flags);

/// UsageError for flags that have no effect with the others.
void check_optimizer_flags(const OptimizerFlags& flags, OptimizerKind optimizer);

/// Options of a training of `total_steps` steps, resumed parts included. InputError if the warm-up
/// and the decay do not fit in it, or the minimum rate is above the rate.
TrainingOptions training_options(const OptimizerFlags& flags, OptimizerKind optimizer,
                                 std::int64_t total_steps);

}  // namespace meshwright
