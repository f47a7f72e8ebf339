/// The learning rate of every training step.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace meshwright {

enum class RateDecay : std::uint8_t {
  kConstant,
  kLinear,  ///< from the end of the warm-up to the last step
  kCosine,  ///< likewise, along half a period of the cosine (arXiv 1608.03983, without restarts)
  kWsd      ///< warm-up, stable, decay: linear over the final steps only (arXiv 2404.06395)
};

/// "constant", "linear", "cosine", "wsd".
std::string_view name_of(RateDecay decay);
std::optional<RateDecay> rate_decay_from_name(std::string_view name);

/// How the rate changes over the `total` steps of a training, which several runs may share.
struct RateSchedule {
  RateDecay decay = RateDecay::kConstant;
  std::int64_t warmup = 0;       ///< steps of linear growth; the last one has the peak rate
  std::int64_t total = 0;        ///< unused by kConstant
  std::int64_t final_steps = 0;  ///< kWsd only: steps of the decay
  float minimum = 0;             ///< the rate that a decay leads to, reached after the last step
};

/// Rate of step number `step`, from 0. With warm-up W, last step T - 1 and decay from step D (D = W
/// but for kWsd):
///   step < W:  peak (step + 1) / W
///   step < D:  peak
///   else:      minimum + (peak - minimum) f(x),  x = (step - D) / (T - D),
///              f(x) = 1 - x (linear) or (1 + cos(pi x)) / 2
/// as in llm.c: no step has rate 0, and the first step after the warm-up has the peak rate.
float learning_rate_at(float peak, const RateSchedule& schedule, std::int64_t step);

}  // namespace meshwright
