#include "gui/timeline_view/header.hpp"

#include <QPainter>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/state.hpp"
#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {
namespace {

/// The triangle next to a rank's name; points down if its streams are shown.
QPolygonF opener(bool is_open, QPointF at) {
  const QPolygonF down({{-4, -2}, {4, -2}, {0, 3}}), right({{-2, -4}, {-2, 4}, {3, 0}});
  return (is_open ? down : right).translated(at);
}

/// The name of a lane and the small detail next to it.
std::pair<QString, QString> names_of(const TimelineContent& content, const Lane& lane) {
  const TimelineRow& row = content.row_of(lane);
  const QString label = QString::fromStdString(row.label);
  switch (lane.kind) {
    case LaneKind::kSlices:
      break;
    case LaneKind::kMemory:
      return {{}, TimelineText::tr("memory")};
    case LaneKind::kInFlight:
      return {{}, TimelineText::tr("in flight")};
    case LaneKind::kLinks:
      return {{}, TimelineText::tr("streams")};
    case LaneKind::kDifference:
      return {{}, TimelineText::tr("difference")};
  }
  const bool is_named = lane.leads_rank && row.rank >= 0;
  const QString name = is_named ? TimelineText::tr("rank %1").arg(row.rank) : QString();
  if (content.is_comparison() && lane.leads_rank && !lane.is_measured)
    return {name, TimelineText::tr("predicted")};
  if (!is_named)
    return {name, lane.is_measured && row.is_compute ? TimelineText::tr("measured") : label};
  if (lane.is_pinned && !row.is_compute) return {name, label};
  return {name, row.pipeline_rank >= 0 ? TimelineText::tr("pp rank %1").arg(row.pipeline_rank)
                                       : QString()};
}

}  // namespace

void paint_gutter(QPainter& painter, const TimelineState& state, const QFont& font) {
  const TimelineColors& c = state.appearance.colors();
  const TimelineFrame frame = state.frame();
  const TimelineGeometry& geometry = frame.geometry;
  painter.save();
  painter.setClipRect(geometry.gutter, Qt::IntersectClip);
  painter.fillRect(geometry.gutter, color(c.header));
  QFont text = font;
  text.setPixelSize(12);
  QFont small = text;
  small.setPixelSize(10);
  const int pinned = frame.arrangement->pinned_height;
  for (const Lane& lane : frame.arrangement->lanes) {
    const int top = frame.top_of(lane);
    if (top > geometry.gutter.bottom() && !lane.is_pinned) break;
    if (top + lane.height < geometry.gutter.top() + (lane.is_pinned ? 0 : pinned)) continue;
    const QRect place(0, top, TimelineGeometry::kGutter, lane.height);
    if (lane.can_open) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(color(c.faint_text));
      painter.drawPolygon(opener(lane.is_open, {9, top + lane.height / 2.0}));
    }
    const auto [name, detail] = names_of(frame.content, lane);
    painter.setFont(text);
    painter.setPen(color(c.text));
    painter.drawText(place.adjusted(20, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
    painter.setFont(small);
    painter.setPen(color(c.faint_text));
    painter.drawText(place.adjusted(name.isEmpty() ? 28 : 20, 0, -14, 0),
                     int{Qt::AlignVCenter} | int{name.isEmpty() ? Qt::AlignLeft : Qt::AlignRight},
                     QFontMetrics(small).elidedText(detail, Qt::ElideRight, 92));
    if (lane.is_pinned)
      painter.fillRect(QRect(0, top, 3, lane.height), color(c.ghost));
    else if (state.editing.is_editable() && lane.leads_rank &&
             frame.content.row_of(lane).pipeline_rank >= 0)
      painter.fillRect(QRect(TimelineGeometry::kGutter - 6, top + 4, 3, lane.height - 8),
                       color(c.faint_text));
  }
  if (pinned > 0) {
    painter.setPen(color(c.grid));
    const int y = geometry.gutter.top() + pinned - 2;
    painter.drawLine(0, y, geometry.gutter.right(), y);
  }
  painter.restore();
}

void paint_overview_strip(QPainter& painter, const TimelineState& state, const QImage& image,
                          int width) {
  const TimelineColors& c = state.appearance.colors();
  const TimeWindow& window = state.viewport.window();
  const QRect place = state.geometry.overview;
  painter.fillRect(QRect(0, 0, width, TimelineGeometry::kOverview + TimelineGeometry::kRuler),
                   color(c.header));
  if (!image.isNull())
    painter.drawImage(QRectF(place).adjusted(0, 3, 0, -3), image, QRectF(image.rect()));
  const TimeWindow all = whole(state.content.tracks->end, place.width());
  const double left =
      place.left() + std::clamp(all.pixel_of(window.from), 0.0, static_cast<double>(place.width()));
  const double right =
      place.left() + std::clamp(all.pixel_of(window.to), 0.0, static_cast<double>(place.width()));
  QColor veil = color(c.background);
  veil.setAlpha(150);
  painter.fillRect(QRectF(place.left(), 0, left - place.left(), place.height()), veil);
  painter.fillRect(QRectF(right, 0, place.right() + 1 - right, place.height()), veil);
  painter.setPen(QPen(color(c.faint_text), 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(left, 1.5, std::max(3.0, right - left) - 1, place.height() - 4));
}

void paint_ruler(QPainter& painter, const TimelineState& state, const QFont& font) {
  const TimelineColors& c = state.appearance.colors();
  const TimeWindow& window = state.viewport.window();
  const QRect place = state.geometry.ruler;
  painter.save();
  painter.setClipRect(place, Qt::IntersectClip);
  QFont small = font;
  small.setPixelSize(10);
  painter.setFont(small);
  for (const RulerMark& mark : ruler_marks(window)) {
    const int x = place.left() + static_cast<int>(std::lround(window.pixel_of(mark.time)));
    painter.setPen(color(c.grid));
    painter.drawLine(x, place.bottom() - (mark.label.empty() ? 3 : 8), x, place.bottom());
    if (mark.label.empty()) continue;
    painter.setPen(color(c.faint_text));
    const QString label = QString::fromStdString(mark.label);
    if (x + 4 + painter.fontMetrics().horizontalAdvance(label) > place.right()) continue;
    painter.drawText(QRect(x + 4, place.top(), 120, place.height() - 4),
                     Qt::AlignLeft | Qt::AlignVCenter, label);
  }
  painter.setPen(color(c.grid));
  painter.drawLine(place.bottomLeft(), place.bottomRight());
  painter.restore();
  // The duration of the visible range, left of the ruler.
  painter.setFont(small);
  painter.setPen(color(c.faint_text));
  painter.drawText(
      QRect(8, place.top(), TimelineGeometry::kGutter - 16, place.height()),
      Qt::AlignLeft | Qt::AlignVCenter,
      TimelineText::tr("visible: %1").arg(QString::fromStdString(format_time(window.span(), 3))));
}

}  // namespace meshwright::gui
