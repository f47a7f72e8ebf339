#include "gui/timeline/order_edit.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright::gui {
namespace {

std::vector<std::size_t> passes_of(const TimelineTracks& tracks, std::size_t row) {
  std::vector<std::size_t> passes;
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s)
    if (is_pass(tracks.kind[s])) passes.push_back(s);
  return passes;
}

}  // namespace

std::optional<OrderEdit> order_edit_at(const TimelineTracks& tracks, std::size_t slice,
                                       Nanoseconds time) {
  if (slice >= tracks.slice_count() || !is_pass(tracks.kind[slice])) return std::nullopt;
  const std::size_t row = tracks.row_of(slice);
  const std::vector<std::size_t> passes = passes_of(tracks, row);
  const auto own = std::find(passes.begin(), passes.end(), slice);
  MW_CHECK(own != passes.end());
  // After every other pass with its middle before `time`.
  std::int32_t to = 0;
  for (const std::size_t other : passes)
    if (other != slice && tracks.start_of(other) + tracks.duration_of(other) / 2 < time) ++to;
  const auto from = static_cast<std::int32_t>(own - passes.begin());
  if (from == to) return std::nullopt;
  return OrderEdit{
      .row = row, .rank = tracks.rows[row].rank, .from = from, .to = to, .slice = slice};
}

std::vector<std::size_t> order_after(const TimelineTracks& tracks, const OrderEdit& edit) {
  std::vector<std::size_t> order = passes_of(tracks, edit.row);
  const auto count = static_cast<std::int32_t>(order.size());
  MW_CHECK(edit.from >= 0);
  MW_CHECK(edit.from < count);
  MW_CHECK(edit.to >= 0);
  MW_CHECK(edit.to < count);
  const auto at = [&](std::int32_t i) { return order.begin() + i; };
  if (edit.from < edit.to)
    std::rotate(at(edit.from), at(edit.from + 1), at(edit.to + 1));
  else
    std::rotate(at(edit.to), at(edit.from), at(edit.from + 1));
  return order;
}

}  // namespace meshwright::gui
