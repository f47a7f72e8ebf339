#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const SortByExpert& a) {
  std::iota(a.slot_of_row.begin(), a.slot_of_row.end(), 0);
  std::stable_sort(a.slot_of_row.begin(), a.slot_of_row.end(), [&](std::int32_t x, std::int32_t y) {
    return get(a.experts, x) < get(a.experts, y);
  });
  for (std::int64_t row = 0; row < std::ssize(a.slot_of_row); ++row)
    get(a.row_of_slot, get(a.slot_of_row, row)) = static_cast<std::int32_t>(row);
  std::fill(a.counts.begin(), a.counts.end(), 0);
  for (const std::int32_t expert : a.experts) ++get(a.counts, expert);
}

void run(const Launch&, const GatherRows& a) {
  for (std::int64_t r = 0; r < a.y.rows; ++r) {
    const std::int64_t from = get(a.index, r);
    const double scale = a.scales.empty() || from < 0 ? 1.0 : double{get(a.scales, from)};
    for (std::int64_t i = 0; i < a.y.columns; ++i)
      put(a.y, r, i, from < 0 ? 0 : scale * at(a.x, from / a.copies, i));
  }
}

void run(const Launch&, const CombineRows& a) {
  for (std::int64_t n = 0; n < a.y.rows; ++n)
    for (std::int64_t i = 0; i < a.y.columns; ++i) {
      double sum = 0;
      for (std::int64_t slot = n * a.copies; slot < (n + 1) * a.copies; ++slot)
        if (get(a.index, slot) >= 0)
          sum += (a.weights.empty() ? 1.0 : double{get(a.weights, slot)}) *
                 at(a.x, get(a.index, slot), i);
      put(a.y, n, i, sum);
    }
}

void run(const Launch&, const CombineWeightGradient& a) {
  for (std::int64_t slot = 0; slot < std::ssize(a.index); ++slot) {
    const std::int64_t row = get(a.index, slot);
    double product = 0;
    for (std::int64_t i = 0; row >= 0 && i < a.dy.columns; ++i)
      product += at(a.dy, slot / a.copies, i) * at(a.x, row, i);
    get(a.dweights, slot) = static_cast<float>(product);
  }
}

}  // namespace meshwright::reference
