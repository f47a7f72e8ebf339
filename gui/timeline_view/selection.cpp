#include "gui/timeline_view/selection.hpp"

#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {

std::optional<std::size_t> TimelineSelection::slice_or_after_bubble() const {
  if (bubble_ && bubble_->slice_after >= 0) return static_cast<std::size_t>(bubble_->slice_after);
  return slice_;
}

std::optional<std::pair<Nanoseconds, Nanoseconds>> TimelineSelection::times() const {
  if (slice_)
    return std::pair(content_.tracks->start_of(*slice_), content_.tracks->end_of(*slice_));
  if (bubble_) return std::pair(bubble_->from, bubble_->to);
  if (area_) return std::pair(area_->from, area_->to);
  return std::nullopt;
}

void TimelineSelection::select_slice(std::optional<std::size_t> slice) {
  if (slice && (content_.tracks == nullptr || *slice >= content_.tracks->slice_count()))
    slice.reset();
  bubble_.reset();
  if (slice_ == slice) return;
  slice_ = slice;
  measured_slice_ = slice ? content_.measured_of(*slice) : std::nullopt;
  Q_EMIT changed();
  Q_EMIT slice_selected(slice ? static_cast<qint64>(*slice) : -1);
  if (slice) Q_EMIT described(describe_slice(*content_.tracks, content_.causes.get(), *slice));
}

void TimelineSelection::select_bubble(const Bubble& bubble) {
  slice_.reset();
  measured_slice_.reset();
  bubble_ = bubble;
  Q_EMIT changed();
  Q_EMIT bubble_selected(bubble.slice_after);
  Q_EMIT described(describe_bubble(*content_.tracks, content_.causes.get(), bubble));
}

void TimelineSelection::select_area(const std::optional<TimelineArea>& area) {
  if (area_ == area) return;
  area_ = area;
  Q_EMIT changed();
  if (area)
    Q_EMIT area_selected(*area);
  else
    Q_EMIT area_cleared();
}

void TimelineSelection::set_cursors(std::optional<Nanoseconds> a, std::optional<Nanoseconds> b) {
  cursor_a_ = a;
  cursor_b_ = b;
  Q_EMIT changed();
  Q_EMIT cursors_changed();
}

void TimelineSelection::select_area_of_selection() {
  if (slice_)
    select_area(TimelineArea{.rows = {content_.tracks->row_of(*slice_)},
                             .from = content_.tracks->start_of(*slice_),
                             .to = content_.tracks->end_of(*slice_)});
  else if (bubble_)
    select_area(TimelineArea{.rows = {bubble_->row}, .from = bubble_->from, .to = bubble_->to});
}

void TimelineSelection::set_cursors_to_selection() {
  if (const auto range = times()) set_cursors(range->first, range->second);
}

void TimelineSelection::mark_slices(std::vector<std::uint32_t> slices) {
  marked_ = std::move(slices);
  Q_EMIT changed();
}

void TimelineSelection::clear() {
  bubble_.reset();
  marked_.clear();
  Q_EMIT cleared();
  select_slice(std::nullopt);
  select_area(std::nullopt);
  Q_EMIT changed();
}

void TimelineSelection::forget() {
  slice_.reset();
  measured_slice_.reset();
  bubble_.reset();
  marked_.clear();
  if (!area_) return;
  area_.reset();
  Q_EMIT area_cleared();
}

}  // namespace meshwright::gui
