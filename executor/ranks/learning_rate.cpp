#include "executor/ranks/learning_rate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/base/value_named.hpp"

namespace meshwright {
namespace {

constexpr std::array<std::string_view, 4> kDecayNames{"constant", "linear", "cosine", "wsd"};

std::int64_t decay_begin(const RateSchedule& s) {
  return s.decay == RateDecay::kWsd ? std::max(s.warmup, s.total - s.final_steps) : s.warmup;
}

}  // namespace

std::string_view name_of(RateDecay decay) { return entry_of(kDecayNames, decay); }

std::optional<RateDecay> rate_decay_from_name(std::string_view name) {
  return value_named<RateDecay>(name, kDecayNames.size());
}

float learning_rate_at(float peak, const RateSchedule& s, std::int64_t step) {
  const double highest = static_cast<double>(peak), lowest = static_cast<double>(s.minimum);
  if (step < s.warmup)
    return static_cast<float>(highest * static_cast<double>(step + 1) /
                              static_cast<double>(s.warmup));
  const std::int64_t begin = decay_begin(s);
  if (s.decay == RateDecay::kConstant || step < begin) return peak;
  if (step >= s.total) return s.minimum;
  const double x = static_cast<double>(step - begin) / static_cast<double>(s.total - begin);
  const double left =
      s.decay == RateDecay::kCosine ? (1 + std::cos(std::numbers::pi * x)) / 2 : 1 - x;
  return static_cast<float>(lowest + (highest - lowest) * left);
}

}  // namespace meshwright
