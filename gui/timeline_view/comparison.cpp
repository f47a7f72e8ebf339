/// Comparison mode of a TimelineView: predicted and measured rows, and their pairs.
#include <algorithm>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

void TimelineView::set_comparison(std::shared_ptr<const TimelineTracks> predicted,
                                  std::shared_ptr<const TimelineTracks> measured,
                                  std::shared_ptr<const TimelineComparison> pairs) {
  Parts& p = *parts_;
  p.tracks = std::move(predicted);
  p.measured = std::move(measured);
  p.comparison = std::move(pairs);
  forget_what_was_chosen();
  show_new_tracks(false);
}

void TimelineView::set_pairs(std::shared_ptr<const TimelineComparison> pairs) {
  if (parts_->measured == nullptr) return;
  parts_->comparison = std::move(pairs);
  refresh();
}

void TimelineView::set_morphed(std::shared_ptr<const TimelineTracks> predicted) {
  if (parts_->measured == nullptr) return;
  parts_->tracks = std::move(predicted);
  parts_->in_flight = std::make_shared<InFlightCurves>(parts_->tracks);
  refresh();
}

std::shared_ptr<const TimelineComparison> TimelineView::comparison() const {
  return parts_->comparison;
}

/// Pairs are sorted by measured slice, so the pairs of one row are adjacent.
std::optional<std::size_t> TimelineView::Parts::measured_of(std::size_t predicted) const {
  if (comparison == nullptr) return std::nullopt;
  const auto row = static_cast<std::int32_t>(tracks->row_of(predicted));
  const auto rows = std::find_if(comparison->rows.begin(), comparison->rows.end(),
                                 [row](const RowPair& pair) { return pair.predicted == row; });
  if (rows == comparison->rows.end() || rows->measured < 0) return std::nullopt;
  const auto r = static_cast<std::size_t>(rows->measured);
  const auto end = first_pair_from(measured->row_begin[r + 1]);
  const auto found =
      std::find_if(first_pair_from(measured->row_begin[r]), end,
                   [predicted](const SlicePair& pair) { return pair.predicted == predicted; });
  if (found == end) return std::nullopt;
  return found->measured;
}

std::optional<std::size_t> TimelineView::Parts::predicted_of(std::size_t of_measured) const {
  if (comparison == nullptr) return std::nullopt;
  const auto found = first_pair_from(of_measured);
  if (found == comparison->slices.end() || found->measured != of_measured) return std::nullopt;
  return found->predicted;
}

std::vector<SlicePair>::const_iterator TimelineView::Parts::first_pair_from(
    std::size_t of_measured) const {
  return std::lower_bound(comparison->slices.begin(), comparison->slices.end(), of_measured,
                          [](const SlicePair& pair, std::size_t s) { return pair.measured < s; });
}

}  // namespace meshwright::gui
