#include <algorithm>
#include <cmath>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

// In fp32 like all back ends, so that ties and rounding do not depend on the back end.
void run(const Launch&, const RoundToFloat8& a) {
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t first = 0; first < a.x.columns; first += kFloat8Block) {
      const std::int64_t last = std::min(a.x.columns, first + kFloat8Block);
      float largest = 0;
      for (std::int64_t i = first; i < last; ++i)
        largest = std::max(largest, static_cast<float>(std::abs(at(a.x, r, i))));
      const float scale = largest > 0 ? largest / kLargestFloat8 : 1.0F;
      for (std::int64_t i = first; i < last; ++i) {
        const float q = rounded_to_e4m3(static_cast<float>(at(a.x, r, i)) / scale);
        put(a.y, r, i, double{q * scale});
      }
    }
}

}  // namespace meshwright::reference
