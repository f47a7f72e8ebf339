/// Painting of a TimelineView on the GUI thread: the finished image of the rows, names, overview
/// and ruler. The overlay is in timeline_view_overlay.cpp.
#include <QPaintEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

/// The triangle next to a rank's name; points down if its streams are shown.
QPolygonF opener(bool is_open, QPointF at) {
  const QPolygonF down({{-4, -2}, {4, -2}, {0, 3}}), right({{-2, -4}, {-2, 4}, {3, 0}});
  return (is_open ? down : right).translated(at);
}

}  // namespace

TimelineScene TimelineView::Parts::scene(const TimelineGeometry& geometry) const {
  TimeWindow shown = window;
  shown.width = geometry.body.width();
  return {.tracks = tracks,
          .measured = measured,
          .ghost = ghost,
          .causes = causes,
          .comparison = comparison,
          .in_flight = in_flight,
          .arrangement = arrangement,
          .font = font,
          .window = shown,
          .height = geometry.body.height(),
          .scroll = scroll(),
          .style = style};
}

bool TimelineView::Parts::body_is_of_now() const {
  return tracks != nullptr && arrangement != nullptr && !body_image.isNull() && body_scene &&
         body_scene->window == window && body_scene->scroll == scroll();
}

TimeWindow TimelineView::Parts::window_of(const Lane& lane) const {
  const Nanoseconds offset =
      lane.is_measured && comparison != nullptr ? comparison->offset : Nanoseconds(0);
  return {window.from - offset, window.to - offset, window.width};
}

void TimelineView::paintEvent(QPaintEvent* event) {
  const Parts& p = *parts_;
  QPainter painter(this);
  painter.setClipRegion(event->region());
  const TimelineGeometry geometry = geometry_of_parts();
  QRegion bare(rect());
  if (p.gliding.empty() && p.body_is_of_now() &&
      QSize(p.body_scene->window.width, p.body_scene->height) == geometry.body.size())
    bare -= geometry.body;  // avoid painting pixels twice
  for (const QRect& part : bare) painter.fillRect(part, colour(p.style.colours.background));
  if (p.tracks == nullptr || p.arrangement == nullptr) {
    painter.setPen(colour(p.style.colours.faint_text));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, p.placeholder);
    return;
  }
  if (p.gliding.empty())
    paint_body(painter, geometry);
  else
    paint_glide(painter, geometry);
  // A mouse move repaints only a few strips of the body, not names and overview.
  if (event->region().intersects(geometry.gutter)) paint_gutter(painter, geometry);
  if (event->region().intersects(geometry.overview.united(geometry.ruler))) {
    paint_overview(painter, geometry);
    paint_ruler(painter, geometry);
  }
  paint_overlay(painter, geometry);
  if (hasFocus()) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

/// Paints the current image, scaled to the current window until a new one is ready.
void TimelineView::paint_body(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  if (p.body_image.isNull() || !p.body_scene) return;
  const TimelineScene& had = *p.body_scene;
  painter.save();
  painter.setClipRect(geometry.body, Qt::IntersectClip);
  if (p.body_is_of_now()) {
    painter.drawImage(geometry.body.topLeft(), p.body_image);
  } else {
    const double left = p.window.pixel_of(had.window.from),
                 right = p.window.pixel_of(had.window.to);
    const QRectF place(geometry.body.left() + left, geometry.body.top() + had.scroll - p.scroll(),
                       right - left, had.height);
    painter.drawImage(place, p.body_image, QRectF(p.body_image.rect()));
  }
  painter.restore();
}

/// The name of a lane and the small detail next to it.
std::pair<QString, QString> TimelineView::names_of(const Lane& lane) const {
  const TimelineRow& row = parts_->tracks_of(lane)->rows[static_cast<std::size_t>(lane.row)];
  const QString label = QString::fromStdString(row.label);
  switch (lane.kind) {
    case LaneKind::kSlices:
      break;
    case LaneKind::kMemory:
      return {{}, tr("memory")};
    case LaneKind::kInFlight:
      return {{}, tr("in flight")};
    case LaneKind::kLinks:
      return {{}, tr("streams")};
    case LaneKind::kDifference:
      return {{}, tr("difference")};
  }
  const bool is_named = lane.leads_rank && row.rank >= 0;
  const QString name = is_named ? tr("rank %1").arg(row.rank) : QString();
  if (parts_->measured != nullptr && lane.leads_rank && !lane.is_measured)
    return {name, tr("predicted")};
  if (!is_named) return {name, lane.is_measured && row.is_compute ? tr("measured") : label};
  if (lane.is_pinned && !row.is_compute) return {name, label};
  return {name, row.stage >= 0 ? tr("pp rank %1").arg(row.stage) : QString()};
}

void TimelineView::paint_gutter(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  painter.save();
  painter.setClipRect(geometry.gutter, Qt::IntersectClip);
  painter.fillRect(geometry.gutter, colour(c.header));
  QFont text = font();
  text.setPixelSize(12);
  QFont small = text;
  small.setPixelSize(10);
  const int pinned = p.arrangement->pinned_height;
  for (const Lane& lane : p.arrangement->lanes) {
    const int top = geometry.gutter.top() + lane.top - (lane.is_pinned ? 0 : p.scroll());
    if (top > geometry.gutter.bottom() && !lane.is_pinned) break;
    if (top + lane.height < geometry.gutter.top() + (lane.is_pinned ? 0 : pinned)) continue;
    const TimelineTracks& tracks = *p.tracks_of(lane);
    const TimelineRow& row = tracks.rows[static_cast<std::size_t>(lane.row)];
    const QRect place(0, top, TimelineGeometry::kGutter, lane.height);
    if (lane.can_open) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(colour(c.faint_text));
      painter.drawPolygon(opener(lane.is_open, {9, top + lane.height / 2.0}));
    }
    const auto [name, detail] = names_of(lane);
    painter.setFont(text);
    painter.setPen(colour(c.text));
    painter.drawText(place.adjusted(20, 0, -4, 0), Qt::AlignVCenter | Qt::AlignLeft, name);
    painter.setFont(small);
    painter.setPen(colour(c.faint_text));
    painter.drawText(place.adjusted(name.isEmpty() ? 28 : 20, 0, -14, 0),
                     Qt::AlignVCenter | (name.isEmpty() ? Qt::AlignLeft : Qt::AlignRight),
                     QFontMetrics(small).elidedText(detail, Qt::ElideRight, 92));
    if (lane.is_pinned)
      painter.fillRect(QRect(0, top, 3, lane.height), colour(c.ghost));
    else if (p.editable && lane.leads_rank && row.stage >= 0)
      painter.fillRect(QRect(TimelineGeometry::kGutter - 6, top + 4, 3, lane.height - 8),
                       colour(c.faint_text));
  }
  if (pinned > 0) {
    painter.setPen(colour(c.grid));
    const int y = geometry.gutter.top() + pinned - 2;
    painter.drawLine(0, y, geometry.gutter.right(), y);
  }
  painter.restore();
}

void TimelineView::paint_overview(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  const QRect place = geometry.overview;
  painter.fillRect(QRect(0, 0, width(), TimelineGeometry::kOverview + TimelineGeometry::kRuler),
                   colour(c.header));
  if (!p.overview_image.isNull())
    painter.drawImage(QRectF(place).adjusted(0, 3, 0, -3), p.overview_image,
                      QRectF(p.overview_image.rect()));
  const TimeWindow all = whole(p.tracks->end, place.width());
  const double left = place.left() + std::clamp(all.pixel_of(p.window.from), 0.0,
                                                static_cast<double>(place.width()));
  const double right =
      place.left() + std::clamp(all.pixel_of(p.window.to), 0.0, static_cast<double>(place.width()));
  QColor veil = colour(c.background);
  veil.setAlpha(150);
  painter.fillRect(QRectF(place.left(), 0, left - place.left(), place.height()), veil);
  painter.fillRect(QRectF(right, 0, place.right() + 1 - right, place.height()), veil);
  painter.setPen(QPen(colour(c.faint_text), 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(QRectF(left, 1.5, std::max(3.0, right - left) - 1, place.height() - 4));
}

void TimelineView::paint_ruler(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  const QRect place = geometry.ruler;
  painter.save();
  painter.setClipRect(place, Qt::IntersectClip);
  QFont small = font();
  small.setPixelSize(10);
  painter.setFont(small);
  for (const RulerMark& mark : ruler_marks(p.window)) {
    const int x = place.left() + static_cast<int>(std::lround(p.window.pixel_of(mark.time)));
    painter.setPen(colour(c.grid));
    painter.drawLine(x, place.bottom() - (mark.label.empty() ? 3 : 8), x, place.bottom());
    if (mark.label.empty()) continue;
    painter.setPen(colour(c.faint_text));
    const QString label = QString::fromStdString(mark.label);
    if (x + 4 + painter.fontMetrics().horizontalAdvance(label) > place.right()) continue;
    painter.drawText(QRect(x + 4, place.top(), 120, place.height() - 4),
                     Qt::AlignLeft | Qt::AlignVCenter, label);
  }
  painter.setPen(colour(c.grid));
  painter.drawLine(place.bottomLeft(), place.bottomRight());
  painter.restore();
  // The duration of the visible range, left of the ruler.
  painter.setFont(small);
  painter.setPen(colour(c.faint_text));
  painter.drawText(QRect(8, place.top(), TimelineGeometry::kGutter - 16, place.height()),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   tr("visible: %1").arg(QString::fromStdString(format_time(p.window.span(), 3))));
}

QRectF TimelineView::box_of(std::size_t row, Nanoseconds from, Nanoseconds to,
                            const TimelineGeometry& geometry) const {
  return parts_->box_of(false, row, from, to, geometry);
}

/// Times are in the clock of the lane's tracks.
QRectF TimelineView::Parts::box_of(bool is_measured, std::size_t row, Nanoseconds from,
                                   Nanoseconds to, const TimelineGeometry& geometry) const {
  for (const Lane& lane : arrangement->lanes) {
    if (lane.kind != LaneKind::kSlices || lane.is_measured != is_measured ||
        lane.row != static_cast<std::int32_t>(row))
      continue;
    const TimeWindow shown = window_of(lane);
    const double left = shown.pixel_of(from), right = shown.pixel_of(to);
    const int top = geometry.body.top() + lane.top - (lane.is_pinned ? 0 : scroll());
    return {geometry.body.left() + left, static_cast<double>(top), std::max(1.0, right - left),
            static_cast<double>(lane.height)};
  }
  return {};
}

QRectF TimelineView::Parts::box_of_slice(bool is_measured, std::size_t one,
                                         const TimelineGeometry& geometry) const {
  const TimelineTracks& shown = is_measured ? *measured : *tracks;
  return box_of(is_measured, shown.row_of(one), shown.start_of(one), shown.end_of(one), geometry);
}

}  // namespace meshwright::gui
