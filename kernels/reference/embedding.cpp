#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {

void run(const Launch&, const EmbeddingForward& a) {
  for (std::int64_t n = 0; n < a.y.rows; ++n) {
    const std::int64_t row = get(a.ids, n) - a.first_row;
    const bool is_here = row >= 0 && row < a.table.rows;
    for (std::int64_t i = 0; i < a.y.columns; ++i)
      put(a.y, n, i, (is_here ? at(a.table, row, i) : 0) + (a.accumulate ? at(a.y, n, i) : 0));
  }
}

void run(const Launch&, const EmbeddingBackward& a) {
  for (std::int64_t n = 0; n < a.dy.rows; ++n) {
    const std::int64_t row = get(a.ids, n) - a.first_row;
    if (row < 0 || row >= a.dtable.rows) continue;
    for (std::int64_t i = 0; i < a.dy.columns; ++i) add_to(a.dtable, row, i, at(a.dy, n, i));
  }
}

}  // namespace meshwright::reference
