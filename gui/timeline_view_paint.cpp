/// What the GUI thread paints of a TimelineView: the finished picture of the rows, names, ruler,
/// and the overlay (hover, selection, arrows, cursors), which changes with every move of the
/// pointer.
#include <QLocale>
#include <QPaintEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/timeline_ruler.hpp"
#include "gui/timeline_view.hpp"
#include "gui/timeline_view_parts.hpp"

namespace meshwright::gui {
namespace {

QColor colour(Argb argb) { return QColor::fromRgba(argb); }

constexpr int kMostArrows = 64;

}  // namespace

TimelineScene TimelineView::Parts::scene(const TimelineGeometry& geometry) const {
  TimeWindow shown = window;
  shown.width = geometry.body.width();
  return {.tracks = tracks,
          .measured = measured,
          .ghost = ghost,
          .causes = causes,
          .comparison = comparison,
          .arrangement = arrangement,
          .font = font,
          .window = shown,
          .height = geometry.body.height(),
          .scroll = scroll(),
          .style = style};
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
  painter.fillRect(rect(), colour(p.style.colours.background));
  const TimelineGeometry geometry = geometry_of_parts();
  if (p.tracks == nullptr || p.arrangement == nullptr) {
    painter.setPen(colour(p.style.colours.faint_text));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, p.placeholder);
    return;
  }
  paint_body(painter, geometry);
  // A move of the pointer repaints a few strips of the body: names and overview are left alone.
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

/// The picture at hand, stretched to where it belongs until a new one has been painted.
void TimelineView::paint_body(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  if (p.body_image.isNull() || !p.body_scene) return;
  const TimelineScene& had = *p.body_scene;
  painter.save();
  painter.setClipRect(geometry.body, Qt::IntersectClip);
  if (had.window == p.window && had.scroll == p.scroll()) {
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
      const double x = 9, y = top + lane.height / 2.0;
      const QPolygonF triangle = lane.is_open
                                     ? QPolygonF({{x - 4, y - 2}, {x + 4, y - 2}, {x, y + 3}})
                                     : QPolygonF({{x - 2, y - 4}, {x - 2, y + 4}, {x + 3, y}});
      painter.drawPolygon(triangle);
    }
    QString name, detail;
    switch (lane.kind) {
      case LaneKind::kSlices:
        if (lane.leads_rank && row.rank >= 0) {
          name = tr("rank %1").arg(row.rank);
          if (lane.is_pinned && !row.is_compute)
            detail = QString::fromStdString(row.label);
          else if (row.stage >= 0)
            detail = tr("stage %1").arg(row.stage);
        } else {
          detail = lane.is_measured && row.is_compute ? tr("measured")
                                                      : QString::fromStdString(row.label);
        }
        if (p.measured != nullptr && lane.leads_rank && !lane.is_measured) detail = tr("predicted");
        break;
      case LaneKind::kMemory:
        detail = tr("memory");
        break;
      case LaneKind::kInFlight:
        detail = tr("in flight");
        break;
      case LaneKind::kLinks:
        detail = tr("streams");
        break;
      case LaneKind::kDifference:
        detail = tr("difference");
        break;
    }
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
    painter.drawText(QRect(x + 4, place.top(), 120, place.height() - 4),
                     Qt::AlignLeft | Qt::AlignVCenter, QString::fromStdString(mark.label));
  }
  painter.setPen(colour(c.grid));
  painter.drawLine(place.bottomLeft(), place.bottomRight());
  painter.restore();
  // The length of what is shown stands left of the ruler.
  painter.setFont(small);
  painter.setPen(colour(c.faint_text));
  painter.drawText(QRect(8, place.top(), TimelineGeometry::kGutter - 16, place.height()),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   tr("shown: %1").arg(QString::fromStdString(format_time(p.window.span(), 3))));
}

QRectF TimelineView::box_of(std::size_t row, Nanoseconds from, Nanoseconds to,
                            const TimelineGeometry& geometry) const {
  return parts_->box_of(false, row, from, to, geometry);
}

/// Times are those of the lane's own tracks.
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

void TimelineView::paint_overlay(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  painter.save();
  painter.setClipRect(geometry.body, Qt::IntersectClip);
  const auto outline_box = [&](const QRectF& box, Argb with, int width) {
    if (box.isEmpty()) return;
    painter.setPen(QPen(colour(with), width));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.intersected(QRectF(geometry.body).adjusted(-4, -4, 4, 4))
                         .adjusted(width / 2.0, width / 2.0, -width / 2.0, -width / 2.0));
  };
  const auto outline = [&](bool is_measured, std::size_t slice, Argb with, int width) {
    outline_box(p.box_of_slice(is_measured, slice, geometry), with, width);
  };
  for (std::size_t i = 0; i < p.hits.size() && i < 2000; ++i) {
    const std::size_t s = p.hits[i];
    if (p.tracks->end_of(s) < p.window.from || p.tracks->start_of(s) > p.window.to) continue;
    outline(false, s, c.cursor_b, 1);
  }
  if (p.area) paint_area(painter, *p.area, geometry);
  if (p.hover.bubble && !p.hover.slice)
    outline_box(box_of(p.hover.bubble->row, p.hover.bubble->from, p.hover.bubble->to, geometry),
                c.hover, 1);
  if (p.hover.slice && p.hover.lane)
    outline(p.arrangement->lanes[*p.hover.lane].is_measured, *p.hover.slice, c.hover, 1);
  if (p.slice) outline(false, *p.slice, c.selection, 2);
  if (p.measured_slice) outline(true, *p.measured_slice, c.selection, 2);
  if (p.bubble)
    outline_box(box_of(p.bubble->row, p.bubble->from, p.bubble->to, geometry), c.selection, 2);
  if (p.arrows) paint_arrows(painter, geometry);
  painter.restore();
  paint_cursors(painter, geometry);
  paint_drag(painter, geometry);
  if (p.pointer && geometry.body.contains(*p.pointer)) {
    QColor cross = colour(c.faint_text);
    cross.setAlpha(90);
    painter.setPen(QPen(cross, 1));
    painter.drawLine(p.pointer->x(), geometry.body.top(), p.pointer->x(), geometry.body.bottom());
    if (p.drag == TimelineDrag::kNone) paint_tip(painter);
  }
}

void TimelineView::paint_area(QPainter& painter, const TimelineArea& area,
                              const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  painter.setPen(Qt::NoPen);
  painter.setBrush(colour(p.style.colours.area));
  QRectF around;
  for (const std::size_t row : area.rows) {
    const QRectF box = box_of(row, area.from, area.to, geometry);
    if (box.isEmpty()) continue;
    painter.drawRect(box);
    around = around.isNull() ? box : around.united(box);
  }
  painter.setBrush(Qt::NoBrush);
  QColor edge = colour(p.style.colours.area);
  edge.setAlpha(220);
  painter.setPen(QPen(edge, 1));
  if (!around.isNull()) painter.drawRect(around);
}

/// Of the selected slice alone: all arrows at once would be noise.
void TimelineView::paint_arrows(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  std::size_t slice = p.tracks->slice_count();
  if (p.slice) slice = *p.slice;
  if (p.bubble && p.bubble->slice_after >= 0)
    slice = static_cast<std::size_t>(p.bubble->slice_after);
  if (slice >= p.tracks->slice_count() || p.causes == nullptr) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  int left = kMostArrows;
  const auto arrow = [&](std::size_t from, std::size_t to, bool binds) {
    if (p.tracks->row_of(from) == p.tracks->row_of(to) || left-- <= 0) return;
    const QRectF a =
        box_of(p.tracks->row_of(from), p.tracks->start_of(from), p.tracks->end_of(from), geometry);
    const QRectF b =
        box_of(p.tracks->row_of(to), p.tracks->start_of(to), p.tracks->end_of(to), geometry);
    if (a.isNull() || b.isNull()) return;
    const QPointF begin(a.right(), a.center().y()), end(b.left(), b.center().y());
    const double bend = std::clamp(std::abs(end.x() - begin.x()) / 2, 12.0, 80.0);
    QPainterPath path(begin);
    path.cubicTo(begin + QPointF(bend, 0), end - QPointF(bend, 0), end);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(colour(p.style.colours.background), binds ? 4.5 : 3));
    painter.drawPath(path);
    painter.setPen(QPen(colour(p.style.colours.arrow), binds ? 2 : 1));
    painter.drawPath(path);
    painter.setBrush(colour(p.style.colours.arrow));
    painter.drawPolygon(QPolygonF({end, end + QPointF(-7, -3.5), end + QPointF(-7, 3.5)}));
  };
  // Streams that are closed hide the ends of messages: go on to the pass behind them.
  const auto shown_behind = [&](std::uint32_t s, bool back) {
    for (int steps = 0; steps < 4; ++steps) {
      if (!box_of(p.tracks->row_of(s), p.tracks->start_of(s), p.tracks->end_of(s), geometry)
               .isNull())
        return s;
      std::uint32_t next = kNoSlice;
      if (back) {
        next = p.causes->binding[s];
      } else {
        for (const std::uint32_t after : p.causes->after_of(s))
          if (p.causes->binding[after] == s || next == kNoSlice) next = after;
      }
      if (next == kNoSlice) return s;
      s = next;
    }
    return s;
  };
  for (const std::uint32_t before : p.causes->before_of(slice))
    arrow(shown_behind(before, true), slice, before == p.causes->binding[slice]);
  for (const std::uint32_t after : p.causes->after_of(slice))
    arrow(slice, shown_behind(after, false), p.causes->binding[after] == slice);
  painter.restore();
}

void TimelineView::paint_cursors(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  painter.save();
  painter.setClipRect(geometry.body.united(geometry.ruler), Qt::IntersectClip);
  QFont small = font();
  small.setPixelSize(10);
  painter.setFont(small);
  const auto cursor = [&](const std::optional<Nanoseconds>& at, Argb with, const QString& name) {
    if (!at) return;
    const int x = geometry.body.left() + static_cast<int>(std::lround(p.window.pixel_of(*at)));
    painter.setPen(QPen(colour(with), 1));
    painter.drawLine(x, geometry.ruler.top() + 6, x, geometry.body.bottom());
    painter.setBrush(colour(with));
    const QRect flag(x - 7, geometry.ruler.top() + 1, 14, 13);
    painter.drawRoundedRect(flag, 2, 2);
    painter.setPen(colour(text_on(with)));
    painter.drawText(flag, Qt::AlignCenter, name);
  };
  cursor(p.cursor_a, p.style.colours.cursor_a, QStringLiteral("A"));
  cursor(p.cursor_b, p.style.colours.cursor_b, QStringLiteral("B"));
  const auto is_visible = [&](Nanoseconds at) { return p.window.from <= at && at <= p.window.to; };
  if (p.cursor_a && p.cursor_b && (is_visible(*p.cursor_a) || is_visible(*p.cursor_b))) {
    const double a = p.window.pixel_of(*p.cursor_a), b = p.window.pixel_of(*p.cursor_b);
    const Nanoseconds apart =
        std::max(*p.cursor_a, *p.cursor_b) - std::min(*p.cursor_a, *p.cursor_b);
    const QString text = tr("Δt %1").arg(QString::fromStdString(format_time(apart)));
    const int width = QFontMetrics(small).horizontalAdvance(text) + 12;
    const double middle = std::clamp((a + b) / 2, width / 2.0, p.window.width - width / 2.0);
    const QRectF place(geometry.body.left() + middle - width / 2.0, geometry.ruler.top() + 1, width,
                       14);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour(p.style.colours.text));
    painter.drawRoundedRect(place, 3, 3);
    painter.setPen(colour(p.style.colours.background));
    painter.drawText(place, Qt::AlignCenter, text);
  }
  painter.restore();
}

void TimelineView::paint_drag(QPainter& painter, const TimelineGeometry& geometry) const {
  const Parts& p = *parts_;
  const TimelineColours& c = p.style.colours;
  if (p.drag == TimelineDrag::kArea) {
    painter.setPen(QPen(colour(c.selection), 1, Qt::DashLine));
    painter.setBrush(colour(c.area));
    painter.drawRect(QRect(p.press, p.drag_to).normalized().intersected(geometry.body));
  }
  if (p.drag == TimelineDrag::kOrder && p.pressed.slice) {
    const std::size_t s = *p.pressed.slice;
    QRectF box = box_of(p.tracks->row_of(s), p.tracks->start_of(s), p.tracks->end_of(s), geometry);
    box.translate(p.drag_to.x() - p.press.x(), 0);
    const bool bad = !p.order_problem.isEmpty();
    QColor fill = colour(c.slice[static_cast<std::size_t>(p.tracks->kind[s])]);
    fill.setAlpha(190);
    painter.setBrush(fill);
    painter.setPen(QPen(colour(bad ? c.slower : c.faster), 2));
    painter.drawRect(box);
  }
}

QString TimelineView::tip_text() const {
  const Parts& p = *parts_;
  if (p.drag == TimelineDrag::kSlowdown)
    return tr("stage × %1").arg(QLocale().toString(p.slowdown, 'f', 2));
  if (p.drag == TimelineDrag::kOrder) {
    if (!p.order_edit) return tr("stays where it is");
    return p.order_problem.isEmpty() ? tr("place %1 in its row").arg(p.order_edit->to + 1)
                                     : p.order_problem;
  }
  if (!p.hover.lane) return {};
  const Lane& lane = p.arrangement->lanes[*p.hover.lane];
  const TimelineTracks& tracks = *p.tracks_of(lane);
  const TimelineCauses* causes = lane.is_measured ? nullptr : p.causes.get();
  if (p.hover.slice) {
    const TimeWindow window = p.window_of(lane);
    const double npp = window.nanoseconds_per_pixel();
    // A pixel of several slices says what it is mixed of.
    if (p.pointer && static_cast<double>(tracks.duration_of(*p.hover.slice).value) < 2 * npp) {
      const double x = p.pointer->x() - TimelineGeometry::kGutter;
      return describe_mixture(tracks, static_cast<std::size_t>(lane.row), window.time_at(x),
                              window.time_at(x + 1));
    }
    return describe_slice(tracks, causes, *p.hover.slice);
  }
  if (p.hover.bubble) return describe_bubble(tracks, causes, *p.hover.bubble);
  return {};
}

QRect TimelineView::tip_place(const QString& text) const {
  const Parts& p = *parts_;
  if (text.isEmpty() || !p.pointer) return {};
  const QRect room(0, 0, std::min(460, geometry_of_parts().body.width() - 20), 400);
  QRect place = QFontMetrics(tip_font()).boundingRect(room, Qt::TextWordWrap, text);
  place = place.adjusted(-8, -5, 8, 5);
  place.moveTopLeft(*p.pointer + QPoint(14, 18));
  if (place.right() > width() - 4) place.moveRight(width() - 4);
  if (place.bottom() > height() - 4) place.moveBottom(p.pointer->y() - 10);
  return place;
}

QFont TimelineView::tip_font() const {
  QFont small = font();
  small.setPixelSize(12);
  return small;
}

/// All that the pointer's place has put on the screen.
QRegion TimelineView::hover_region() const {
  const Parts& p = *parts_;
  if (!p.pointer || p.tracks == nullptr || p.arrangement == nullptr) return {};
  const TimelineGeometry geometry = geometry_of_parts();
  QRegion region(QRect(p.pointer->x() - 2, geometry.body.top(), 5, geometry.body.height()));
  region += tip_place(tip_text()).adjusted(-2, -2, 2, 2);
  QRectF box;
  if (p.hover.bubble) {
    box = box_of(p.hover.bubble->row, p.hover.bubble->from, p.hover.bubble->to, geometry);
  } else if (p.hover.slice) {
    box = p.box_of_slice(p.arrangement->lanes[*p.hover.lane].is_measured, *p.hover.slice, geometry);
  }
  region += box.intersected(QRectF(rect())).toAlignedRect().adjusted(-2, -2, 2, 2);
  return region;
}

void TimelineView::paint_tip(QPainter& painter) const {
  const Parts& p = *parts_;
  const QString text = tip_text();
  const QRect place = tip_place(text);
  if (place.isEmpty()) return;
  painter.setFont(tip_font());
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(colour(p.style.colours.grid), 1));
  painter.setBrush(colour(p.style.colours.background));
  painter.drawRoundedRect(QRectF(place), 4, 4);
  painter.setPen(colour(p.style.colours.text));
  painter.drawText(place.adjusted(8, 5, -8, -5), Qt::TextWordWrap, text);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

}  // namespace meshwright::gui
