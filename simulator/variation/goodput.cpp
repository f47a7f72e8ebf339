#include "simulator/variation/goodput.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {

Seconds job_mtbf(const FailureModel& model) {
  MW_CHECK(model.device_mtbf.value > 0);
  MW_CHECK(model.devices >= 1);
  return model.device_mtbf / static_cast<double>(model.devices);
}

Seconds young_interval(const FailureModel& model) {
  return Seconds(std::sqrt(2 * model.checkpoint_write.value * job_mtbf(model).value));
}

/// With x = t / M and c = C / M: (1 - x) exp(x + c) falls from exp(c) > 1 at x = 0 to 0 at x = 1,
/// so there is one root between, found by bisection; ln(1 - x) + x is accurate for small x.
Seconds best_interval(const FailureModel& model) {
  MW_CHECK(model.checkpoint_write.value > 0);
  const double m = job_mtbf(model).value;
  const double c = model.checkpoint_write.value / m;
  double low = 0, high = 1;
  constexpr int kHalvings = 200;  // more than a double has bits
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    (std::log1p(-middle) + middle + c > 0 ? low : high) = middle;
  }
  return Seconds(low * m);
}

Goodput goodput(const FailureModel& model, std::optional<Seconds> interval) {
  MW_CHECK(model.checkpoint_write.value > 0);
  MW_CHECK(model.restart.value >= 0);
  const Seconds t = interval ? *interval : best_interval(model);
  MW_CHECK(t.value > 0);
  const double m = job_mtbf(model).value;
  Goodput result{.interval = t, .between_failures = Seconds(m)};
  const double expected =
      m * std::exp(model.restart.value / m) * std::expm1((t + model.checkpoint_write).value / m);
  if (std::isfinite(expected)) {
    result.useful = t.value / expected;
    result.checkpoints = model.checkpoint_write.value / expected;
  }
  result.lost = std::max(0.0, 1 - result.useful - result.checkpoints);
  return result;
}

}  // namespace meshwright
