/// The overlay of a TimelineView, which changes with every mouse move: hover, selection, arrows,
/// cursors, dragged items, tooltip.
#include <QLocale>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

constexpr int kMostArrows = 64;

}  // namespace

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

/// Paints the arrows of the selected slice only: all arrows at once would be noise.
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
  // Collapsed streams hide the ends of messages: follow the dependency to a visible pass.
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
    return tr("stage time × %1").arg(QLocale().toString(p.slowdown, 'f', 2));
  if (p.drag == TimelineDrag::kOrder) {
    if (!p.order_edit) return tr("same position");
    return p.order_problem.isEmpty() ? tr("move to position %1").arg(p.order_edit->to + 1)
                                     : p.order_problem;
  }
  if (!p.hover.lane) return {};
  const Lane& lane = p.arrangement->lanes[*p.hover.lane];
  const TimelineTracks& tracks = *p.tracks_of(lane);
  const TimelineCauses* causes = lane.is_measured ? nullptr : p.causes.get();
  if (p.hover.slice) {
    const TimeWindow window = p.window_of(lane);
    const double npp = window.nanoseconds_per_pixel();
    // For a pixel with several slices, show its composition.
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

/// The region painted because of the pointer position.
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
