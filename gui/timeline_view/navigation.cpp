/// Navigation of a TimelineView: visible range, scrolling to rows, search matches.
#include <QScrollBar>
#include <algorithm>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

void TimelineView::set_window(const TimeWindow& window) {
  Parts& p = *parts_;
  if (p.window == window) return;
  p.window = window;
  p.window.width = geometry_of_parts().body.width();
  refresh();
  Q_EMIT visible_range_changed(window.from.value, window.to.value);
}

void TimelineView::show_all() {
  if (parts_->tracks == nullptr) return;
  Nanoseconds end = parts_->tracks->end;
  if (parts_->measured != nullptr && parts_->comparison != nullptr)
    end = std::max(end, parts_->measured->end + parts_->comparison->offset);
  set_window(whole(end, geometry_of_parts().body.width()));
}

void TimelineView::show_range(Nanoseconds from, Nanoseconds to) {
  if (to - from < kShortestWindow) {
    const Nanoseconds middle = from + (to - from) / 2;
    from = middle - kShortestWindow / 2;
    to = from + kShortestWindow;
  }
  set_window({from, to, geometry_of_parts().body.width()});
}

Nanoseconds TimelineView::visible_from() const { return parts_->window.from; }
Nanoseconds TimelineView::visible_to() const { return parts_->window.to; }
const TimeWindow& TimelineView::window() const { return parts_->window; }

/// Expands and scrolls until the row is visible.
void TimelineView::reveal_row(std::size_t row) {
  Parts& p = *parts_;
  const auto lane_of_row = [&] {
    const auto& lanes = p.arrangement->lanes;
    return std::find_if(lanes.begin(), lanes.end(), [&](const Lane& lane) {
      return lane.kind == LaneKind::kSlices && !lane.is_measured &&
             lane.row == static_cast<std::int32_t>(row);
    });
  };
  auto lane = lane_of_row();
  if (lane == p.arrangement->lanes.end()) {
    p.options.open_ranks.insert(p.tracks->rows[row].rank);
    if (p.tracks->rows[row].replica > 0) p.options.fold_replicas = false;
    arrange();
    lane = lane_of_row();
  }
  if (lane == p.arrangement->lanes.end() || lane->is_pinned) return;
  const int room = geometry_of_parts().body.height() - p.arrangement->pinned_height;
  const int top = lane->top - p.arrangement->pinned_height;
  if (top < p.scroll())
    p.scroll_bar->setValue(top);
  else if (top + lane->height > p.scroll() + room)
    p.scroll_bar->setValue(top + lane->height - room);
}

void TimelineView::go_to_slice(std::size_t slice) {
  Parts& p = *parts_;
  if (p.tracks == nullptr || slice >= p.tracks->slice_count()) return;
  select_slice(slice);
  reveal_row(p.tracks->row_of(slice));
  const Nanoseconds from = p.tracks->start_of(slice), to = p.tracks->end_of(slice);
  Nanoseconds span = p.window.span();
  constexpr double kVisiblePixels = 8;
  const double pixels = p.window.pixel_of(to) - p.window.pixel_of(from);
  if (pixels < kVisiblePixels)
    span = std::max(kShortestWindow, std::max(Nanoseconds(1), to - from) * 40);
  if (pixels < kVisiblePixels || from < p.window.from || to > p.window.to) {
    const Nanoseconds middle = from + (to - from) / 2;
    show_range(middle - span / 2, middle + span / 2);
  }
  refresh();
}

bool TimelineView::go_to(const QString& place) {
  Parts& p = *parts_;
  if (p.tracks == nullptr) return false;
  std::optional<std::size_t> row;
  QString rest = place.trimmed();
  if (rest.isEmpty()) return false;
  const QString first = rest.section(QLatin1Char(' '), 0, 0);
  const QString digits = first.startsWith(QLatin1Char('r')) ? first.mid(1) : first;
  bool is_rank = false;
  const int rank = digits.toInt(&is_rank);
  if (is_rank && (first.startsWith(QLatin1Char('r')) || rest == first)) {
    for (std::size_t r = 0; r < p.tracks->rows.size() && !row; ++r)
      if (p.tracks->rows[r].rank == rank) row = r;
    if (!row) return false;
    rest = rest.mid(first.size()).trimmed();
  }
  Nanoseconds time;
  const bool has_time = parse_time(rest.toStdString(), time);
  if (!has_time && !(row && rest.isEmpty())) return false;
  if (row) reveal_row(*row);
  if (has_time) show_range(time - p.window.span() / 2, time + p.window.span() / 2);
  if (has_time) p.cursor_a = time;
  refresh();
  return true;
}

void TimelineView::show_hits(std::vector<std::uint32_t> slices) {
  Parts& p = *parts_;
  p.hits = std::move(slices);
  p.hit = 0;
  if (p.tracks == nullptr) p.hits.clear();
  if (p.hits.empty()) {
    update();
    return;
  }
  for (std::size_t i = 0; i < p.hits.size(); ++i)
    if (p.tracks->end_of(p.hits[i]) > p.window.from) {
      p.hit = i;
      break;
    }
  go_to_slice(p.hits[p.hit]);
}

void TimelineView::next_hit() {
  Parts& p = *parts_;
  if (p.hits.empty()) return;
  p.hit = (p.hit + 1) % p.hits.size();
  go_to_slice(p.hits[p.hit]);
}

void TimelineView::previous_hit() {
  Parts& p = *parts_;
  if (p.hits.empty()) return;
  p.hit = (p.hit + p.hits.size() - 1) % p.hits.size();
  go_to_slice(p.hits[p.hit]);
}

}  // namespace meshwright::gui
