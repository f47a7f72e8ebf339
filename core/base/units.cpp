#include "core/base/units.hpp"

#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {

Ticks to_ticks(Seconds time) {
  MW_CHECK(time.value >= 0.0);  // also false for NaN
  const double ticks = std::ceil(time.value * static_cast<double>(kTicksPerSecond));
  MW_CHECK(ticks < 9.2e18);
  return Ticks(static_cast<std::int64_t>(ticks));
}

}  // namespace meshwright
