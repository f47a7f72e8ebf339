/// Output of a TimelineView: a snapshot for painting, and the visible slices as a table.
#include <QPainter>
#include <algorithm>
#include <utility>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/table_model.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

void TimelineView::wait_for_painters() { parts_->queue->wait(); }

TimelineSnapshot TimelineView::snapshot() {
  const Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  TimelineSnapshot taken{.scene = p.scene(geometry),
                         .frame = QPicture(),
                         .size = size(),
                         .body = geometry.body.topLeft(),
                         .font = font(),
                         .dots_per_inch = logicalDpiX(),
                         .rows = {},
                         .selected = p.area};
  QPainter painter(&taken.frame);
  if (p.tracks == nullptr || p.arrangement == nullptr) {
    taken.scene.tracks = nullptr;
    painter.setPen(QColor::fromRgba(p.style.colours.faint_text));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, p.placeholder);
  } else {
    taken.rows = visible_rows();
    paint_frame(painter, geometry);
  }
  return taken;
}

std::vector<std::size_t> TimelineView::visible_rows() const {
  const Parts& p = *parts_;
  std::vector<std::size_t> rows;
  if (p.arrangement == nullptr) return rows;
  for (const Lane& lane : p.arrangement->lanes)
    if (lane.kind == LaneKind::kSlices && !lane.is_measured)
      rows.push_back(static_cast<std::size_t>(lane.row));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

void TimelineView::fill_table(TimelineTableModel& table) const {
  const Parts& p = *parts_;
  table.show(p.tracks, p.causes, visible_rows(), p.window.from, p.window.to);
}

/// Paints everything except rows, pointer and tooltip.
void TimelineView::paint_frame(QPainter& painter, const TimelineGeometry& geometry) {
  Parts& p = *parts_;
  const auto pointer = std::exchange(p.pointer, std::nullopt);
  paint_gutter(painter, geometry);
  paint_overview(painter, geometry);
  paint_ruler(painter, geometry);
  paint_overlay(painter, geometry);
  p.pointer = pointer;
}

}  // namespace meshwright::gui
