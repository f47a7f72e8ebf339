#include "gui/timeline_view/frame.hpp"

#include <algorithm>

namespace meshwright::gui {
namespace {

constexpr int kHandleWidth = 12;

}  // namespace

TimelineGeometry timeline_geometry(QSize size, int scroll_bar) {
  using G = TimelineGeometry;
  const int right = std::max(1, size.width() - G::kGutter - scroll_bar);
  const int top = G::kOverview + G::kRuler;
  const int height = std::max(1, size.height() - top);
  return {.overview = {G::kGutter, 0, right, G::kOverview},
          .ruler = {G::kGutter, G::kOverview, right, G::kRuler},
          .gutter = {0, top, G::kGutter, height},
          .body = {G::kGutter, top, right, height}};
}

TimeWindow TimelineFrame::window_of(const Lane& lane) const {
  const Nanoseconds offset = content.offset_of(lane);
  return {window.from - offset, window.to - offset, window.width};
}

TimelineTarget target_at(const TimelineFrame& frame, QPoint position) {
  TimelineTarget target;
  const TimelineGeometry& geometry = frame.geometry;
  if (frame.arrangement == nullptr) return target;
  if (!geometry.body.contains(position) && !geometry.gutter.contains(position)) return target;
  target.lane = lane_at(*frame.arrangement, position.y() - geometry.body.top(), frame.scroll);
  if (!target.lane || !geometry.body.contains(position)) return target;
  const Lane& lane = frame.arrangement->lanes[*target.lane];
  if (lane.kind != LaneKind::kSlices) return target;
  const TimelineTracks& tracks = frame.content.tracks_of(lane);
  const TimeWindow window = frame.window_of(lane);
  const double x = position.x() - geometry.body.left();
  const auto row = static_cast<std::size_t>(lane.row);
  target.slice = slice_at_pixel(tracks, row, window, x);
  if (!target.slice && tracks.rows[row].is_compute)
    target.bubble = gap_at(tracks, row, window.time_at(x + 0.5));
  return target;
}

std::optional<std::int32_t> pipeline_rank_handle_at(const TimelineFrame& frame, QPoint position) {
  if (position.x() >= TimelineGeometry::kGutter ||
      position.x() < TimelineGeometry::kGutter - kHandleWidth)
    return std::nullopt;
  const TimelineTarget target = target_at(frame, position);
  if (!target.lane) return std::nullopt;
  const Lane& lane = frame.arrangement->lanes[*target.lane];
  const std::int32_t pipeline_rank = frame.content.row_of(lane).pipeline_rank;
  if (!lane.leads_rank || pipeline_rank < 0) return std::nullopt;
  return pipeline_rank;
}

TimelineArea area_between(const TimelineFrame& frame, QPoint a, QPoint b) {
  const QRect& body = frame.geometry.body;
  const QRect box = QRect(a, b).normalized().intersected(body);
  TimelineArea area{.rows = {},
                    .from = frame.window.time_at(box.left() - body.left()),
                    .to = frame.window.time_at(box.right() + 1 - body.left())};
  area.from = std::max(area.from, Nanoseconds(0));
  area.to = std::max(area.from, std::min(area.to, frame.content.tracks->end));
  for (const Lane& lane : frame.arrangement->lanes) {
    const int top = frame.top_of(lane);
    if (lane.kind == LaneKind::kSlices && !lane.is_measured && top <= box.bottom() &&
        top + lane.height > box.top())
      area.rows.push_back(static_cast<std::size_t>(lane.row));
  }
  std::sort(area.rows.begin(), area.rows.end());
  area.rows.erase(std::unique(area.rows.begin(), area.rows.end()), area.rows.end());
  return area;
}

std::vector<std::size_t> rows_with_lane(const TimelineFrame& frame) {
  std::vector<std::size_t> rows;
  if (frame.arrangement == nullptr) return rows;
  for (const Lane& lane : frame.arrangement->lanes)
    if (lane.kind == LaneKind::kSlices && !lane.is_measured)
      rows.push_back(static_cast<std::size_t>(lane.row));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

QRectF box_of(const TimelineFrame& frame, bool is_measured, std::size_t row, Nanoseconds from,
              Nanoseconds to) {
  for (const Lane& lane : frame.arrangement->lanes) {
    if (lane.kind != LaneKind::kSlices || lane.is_measured != is_measured ||
        lane.row != static_cast<std::int32_t>(row))
      continue;
    const TimeWindow shown = frame.window_of(lane);
    const double left = shown.pixel_of(from), right = shown.pixel_of(to);
    return {frame.geometry.body.left() + left, static_cast<double>(frame.top_of(lane)),
            std::max(1.0, right - left), static_cast<double>(lane.height)};
  }
  return {};
}

QRectF box_of(const TimelineFrame& frame, const Bubble& bubble) {
  return box_of(frame, false, bubble.row, bubble.from, bubble.to);
}

QRectF box_of_slice(const TimelineFrame& frame, bool is_measured, std::size_t slice) {
  const TimelineTracks& tracks = is_measured ? *frame.content.measured : *frame.content.tracks;
  return box_of(frame, is_measured, tracks.row_of(slice), tracks.start_of(slice),
                tracks.end_of(slice));
}

}  // namespace meshwright::gui
