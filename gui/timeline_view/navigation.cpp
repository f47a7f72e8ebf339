#include "gui/timeline_view/navigation.hpp"

#include <algorithm>
#include <cmath>

#include "gui/timeline/ruler.hpp"

namespace meshwright::gui {

void TimelineNavigation::go_to_slice(std::size_t slice) {
  if (content_.tracks == nullptr || slice >= content_.tracks->slice_count()) return;
  selection_.select_slice(slice);
  lanes_.reveal_row(content_.tracks->row_of(slice));
  const TimeWindow& window = viewport_.window();
  const Nanoseconds from = content_.tracks->start_of(slice), to = content_.tracks->end_of(slice);
  Nanoseconds span = window.span();
  constexpr double kVisiblePixels = 8;
  const double pixels = window.pixel_of(to) - window.pixel_of(from);
  if (pixels < kVisiblePixels)
    span = std::max(kShortestWindow, std::max(Nanoseconds(1), to - from) * 40);
  if (pixels < kVisiblePixels || from < window.from || to > window.to) {
    const Nanoseconds middle = from + (to - from) / 2;
    viewport_.show_range(middle - span / 2, middle + span / 2);
  }
}

bool TimelineNavigation::go_to(const QString& place) {
  if (content_.tracks == nullptr) return false;
  std::optional<std::size_t> row;
  QString rest = place.trimmed();
  if (rest.isEmpty()) return false;
  const QString first = rest.section(QLatin1Char(' '), 0, 0);
  const QString digits = first.startsWith(QLatin1Char('r')) ? first.mid(1) : first;
  bool is_rank = false;
  const int rank = digits.toInt(&is_rank);
  if (is_rank && (first.startsWith(QLatin1Char('r')) || rest == first)) {
    const std::vector<TimelineRow>& rows = content_.tracks->rows;
    for (std::size_t r = 0; r < rows.size() && !row; ++r)
      if (rows[r].rank == rank) row = r;
    if (!row) return false;
    rest = rest.mid(first.size()).trimmed();
  }
  Nanoseconds time;
  const bool has_time = parse_time(rest.toStdString(), time);
  if (!has_time && !(row && rest.isEmpty())) return false;
  if (row) lanes_.reveal_row(*row);
  if (has_time) {
    viewport_.center_on(time);
    selection_.set_cursors(time, selection_.cursor_b());
  }
  return true;
}

void TimelineNavigation::fit_selection() {
  if (content_.tracks == nullptr) return;
  const auto times = selection_.times();
  if (!times) {
    viewport_.show_all();
    return;
  }
  const auto [from, to] = *times;
  const TimeWindow& window = viewport_.window();
  const Nanoseconds middle = from + (to - from) / 2, half = window.span() / 2;
  const bool is_centered = std::abs((window.from + half - middle).value) <=
                           std::max<std::int64_t>(1, window.span().value / 200);
  if (is_centered || to - from > window.span())
    viewport_.show_range(from - (to - from) * 2 - Nanoseconds(20),
                         to + (to - from) * 2 + Nanoseconds(20));
  else
    viewport_.center_on(middle);
}

void TimelineNavigation::step_slice(int step) {
  if (content_.tracks == nullptr || content_.tracks->slice_count() == 0) return;
  const TimelineTracks& tracks = *content_.tracks;
  if (!selection_.slice()) {
    // Start with the first visible slice.
    for (const Lane& lane : lanes_.arrangement()->lanes) {
      if (lane.kind != LaneKind::kSlices || lane.is_measured) continue;
      const auto row = static_cast<std::size_t>(lane.row);
      const std::size_t first = tracks.first_ending_after(row, viewport_.visible_from());
      if (first >= tracks.row_begin[row + 1]) continue;
      go_to_slice(first);
      return;
    }
    return;
  }
  const std::size_t slice = *selection_.slice(), row = tracks.row_of(slice);
  if (step > 0 ? slice + 1 < tracks.row_begin[row + 1] : slice > tracks.row_begin[row])
    go_to_slice(step > 0 ? slice + 1 : slice - 1);
}

void TimelineNavigation::step_row(int step) {
  if (content_.tracks == nullptr) return;
  if (!selection_.slice()) {
    step_slice(1);
    return;
  }
  const TimelineTracks& tracks = *content_.tracks;
  const auto& lanes = lanes_.arrangement()->lanes;
  const auto own = static_cast<std::int32_t>(tracks.row_of(*selection_.slice()));
  const Nanoseconds at =
      tracks.start_of(*selection_.slice()) + tracks.duration_of(*selection_.slice()) / 2;
  std::ptrdiff_t index = 0;
  const auto count = static_cast<std::ptrdiff_t>(lanes.size());
  const auto is_row = [&](std::ptrdiff_t i) {
    const Lane& lane = lanes[static_cast<std::size_t>(i)];
    return lane.kind == LaneKind::kSlices && !lane.is_measured && !lane.is_pinned;
  };
  while (index < count && !(is_row(index) && lanes[static_cast<std::size_t>(index)].row == own))
    ++index;
  for (index += step; index >= 0 && index < count; index += step) {
    if (!is_row(index)) continue;
    const auto row = static_cast<std::size_t>(lanes[static_cast<std::size_t>(index)].row);
    const std::size_t end = tracks.row_begin[row + 1];
    std::size_t slice = tracks.first_ending_after(row, at);
    if (slice >= end && end > tracks.row_begin[row]) slice = end - 1;
    if (slice >= end) continue;
    go_to_slice(slice);
    return;
  }
}

void TimelineNavigation::follow_dependency() {
  const auto slice = selection_.slice();
  if (!slice || content_.causes == nullptr) return;
  std::uint32_t next = kNoSlice;
  for (const std::uint32_t after : content_.causes->after_of(*slice))
    if (next == kNoSlice || content_.causes->binding[after] == *slice) next = after;
  if (next != kNoSlice) go_to_slice(next);
}

void TimelineNavigation::follow_dependency_back() {
  const auto slice = selection_.slice_or_after_bubble();
  if (!slice || content_.causes == nullptr) return;
  const std::vector<std::uint32_t>& binding = content_.causes->binding;
  if (*slice < binding.size() && binding[*slice] != kNoSlice) go_to_slice(binding[*slice]);
}

void TimelineNavigation::step_bubble(std::ptrdiff_t step) {
  if (content_.causes == nullptr || content_.causes->bubbles.empty()) return;
  const auto count = static_cast<std::ptrdiff_t>(content_.causes->bubbles.size());
  std::ptrdiff_t index =
      bubble_index_ ? static_cast<std::ptrdiff_t>(*bubble_index_) : (step > 0 ? -1 : 0);
  for (std::ptrdiff_t tries = 0; tries < count; ++tries) {
    index = ((index + step) % count + count) % count;
    const Bubble& bubble = content_.causes->bubbles[static_cast<std::size_t>(index)];
    if (lanes_.options().fold_replicas && content_.tracks->rows[bubble.row].replica > 0) continue;
    bubble_index_ = static_cast<std::size_t>(index);
    lanes_.reveal_row(bubble.row);
    const TimeWindow& window = viewport_.window();
    const Nanoseconds length = bubble.to - bubble.from;
    if (bubble.from < window.from || bubble.to > window.to || length * 50 < window.span())
      viewport_.show_range(bubble.from - length * 2, bubble.to + length * 2);
    selection_.select_bubble(bubble);
    return;
  }
}

void TimelineNavigation::show_hits(std::vector<std::uint32_t> slices) {
  if (content_.tracks == nullptr) slices.clear();
  selection_.mark_slices(std::move(slices));
  hit_ = 0;
  const std::vector<std::uint32_t>& hits = selection_.marked_slices();
  if (hits.empty()) return;
  const auto visible = std::find_if(hits.begin(), hits.end(), [&](std::uint32_t slice) {
    return content_.tracks->end_of(slice) > viewport_.visible_from();
  });
  if (visible != hits.end()) hit_ = static_cast<std::size_t>(visible - hits.begin());
  go_to_slice(hits[hit_]);
}

void TimelineNavigation::step_hit(std::size_t step) {
  const std::vector<std::uint32_t>& hits = selection_.marked_slices();
  if (hits.empty()) return;
  hit_ = (hit_ + step) % hits.size();
  go_to_slice(hits[hit_]);
}

}  // namespace meshwright::gui
