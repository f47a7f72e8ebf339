/// AdamW in plain code, for serial emulations of parallel training.
#pragma once

#include <cmath>
#include <vector>

#include "executor/ranks/training_options.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

/// AdamW (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) on a subset of the elements.
class EmulatedAdamW {
 public:
  EmulatedAdamW(const TrainingOptions& options, Block block)
      : o_(options),
        block_(block),
        first_(static_cast<std::size_t>(block.size())),
        second_(static_cast<std::size_t>(block.size())) {}
  const Block& block() const { return block_; }

  void update(std::vector<float>& weights, const std::vector<float>& gradient) {
    ++updates_;
    const double b1 = static_cast<double>(o_.beta1), b2 = static_cast<double>(o_.beta2);
    for (std::size_t i = 0; i < first_.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(block_.begin) + i;
      const double g = static_cast<double>(gradient[at]);
      first_[i] = b1 * first_[i] + (1 - b1) * g;
      second_[i] = b2 * second_[i] + (1 - b2) * g * g;
      const double m = first_[i] / (1 - std::pow(b1, updates_));
      const double v = second_[i] / (1 - std::pow(b2, updates_));
      const double w = static_cast<double>(weights[at]);
      const double step = m / (std::sqrt(v) + static_cast<double>(o_.epsilon)) +
                          static_cast<double>(o_.weight_decay) * w;
      weights[at] = static_cast<float>(w - static_cast<double>(o_.learning_rate) * step);
    }
  }

 private:
  TrainingOptions o_;
  Block block_;
  std::vector<double> first_, second_;
  int updates_ = 0;
};

inline void clip(std::vector<float>& gradient, double limit) {
  double sum = 0;
  for (const float g : gradient) sum += static_cast<double>(g) * static_cast<double>(g);
  const double scale = std::sqrt(sum) > limit ? limit / std::sqrt(sum) : 1;
  for (float& g : gradient) g = static_cast<float>(scale * static_cast<double>(g));
}

}  // namespace meshwright
