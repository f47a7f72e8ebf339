#include "gui/timeline/content.hpp"

#include <algorithm>

namespace meshwright::gui {
namespace {

/// Pairs are sorted by measured slice, so the pairs of one row are adjacent.
auto first_pair_from(const TimelineComparison& comparison, std::size_t of_measured) {
  return std::lower_bound(comparison.slices.begin(), comparison.slices.end(), of_measured,
                          [](const SlicePair& pair, std::size_t s) { return pair.measured < s; });
}

}  // namespace

Nanoseconds TimelineContent::offset_of(const Lane& lane) const {
  return lane.is_measured && comparison != nullptr ? comparison->offset : Nanoseconds(0);
}

Nanoseconds TimelineContent::end() const {
  if (measured == nullptr || comparison == nullptr) return tracks->end;
  return std::max(tracks->end, measured->end + comparison->offset);
}

std::optional<std::size_t> TimelineContent::measured_of(std::size_t predicted) const {
  if (comparison == nullptr) return std::nullopt;
  const auto row = static_cast<std::int32_t>(tracks->row_of(predicted));
  const auto rows = std::find_if(comparison->rows.begin(), comparison->rows.end(),
                                 [row](const RowPair& pair) { return pair.predicted == row; });
  if (rows == comparison->rows.end() || rows->measured < 0) return std::nullopt;
  const auto r = static_cast<std::size_t>(rows->measured);
  const auto end = first_pair_from(*comparison, measured->row_begin[r + 1]);
  const auto found =
      std::find_if(first_pair_from(*comparison, measured->row_begin[r]), end,
                   [predicted](const SlicePair& pair) { return pair.predicted == predicted; });
  if (found == end) return std::nullopt;
  return found->measured;
}

std::optional<std::size_t> TimelineContent::predicted_of(std::size_t of_measured) const {
  if (comparison == nullptr) return std::nullopt;
  const auto found = first_pair_from(*comparison, of_measured);
  if (found == comparison->slices.end() || found->measured != of_measured) return std::nullopt;
  return found->predicted;
}

}  // namespace meshwright::gui
