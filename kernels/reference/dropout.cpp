#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const DropoutForward& a) {
  const std::uint32_t threshold = dropout_threshold(a.mask.probability);
  const double scale = 1 / (1 - double{a.mask.probability});
  for (std::int64_t r = 0; r < a.x.rows; ++r)
    for (std::int64_t i = 0; i < a.x.columns; ++i) {
      const bool kept = is_kept(dropout_row(a.mask.key, get(a.rows, r)), i, threshold);
      get(a.kept, r * a.x.columns + i) = kept ? 1 : 0;
      put(a.y, r, i, kept ? scale * at(a.x, r, i) : 0);
    }
}

void run(const Launch&, const DropoutBackward& a) {
  const double scale = 1 / (1 - double{a.probability});
  for (std::int64_t r = 0; r < a.dy.rows; ++r)
    for (std::int64_t i = 0; i < a.dy.columns; ++i)
      put(a.dx, r, i, get(a.kept, r * a.dy.columns + i) != 0 ? scale * at(a.dy, r, i) : 0);
}

}  // namespace meshwright::reference
