#include "gui/timeline_view/overlay.hpp"

#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/pointer.hpp"
#include "gui/timeline_view/state.hpp"
#include "gui/timeline_view/tip.hpp"
#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {
namespace {

constexpr int kMostArrows = 64;
constexpr std::size_t kMostOutlinedHits = 2'000;

void paint_area(QPainter& painter, const TimelineFrame& frame, const TimelineArea& area,
                const TimelineColors& colors) {
  painter.setPen(Qt::NoPen);
  painter.setBrush(color(colors.area));
  QRectF around;
  for (const std::size_t row : area.rows) {
    const QRectF box = box_of(frame, false, row, area.from, area.to);
    if (box.isEmpty()) continue;
    painter.drawRect(box);
    around = around.isNull() ? box : around.united(box);
  }
  painter.setBrush(Qt::NoBrush);
  QColor edge = color(colors.area);
  edge.setAlpha(220);
  painter.setPen(QPen(edge, 1));
  if (!around.isNull()) painter.drawRect(around);
}

void paint_outlines(QPainter& painter, const TimelineFrame& frame, const TimelineState& state,
                    const TimelineTarget& hovered) {
  const TimelineColors& c = state.appearance.colors();
  const TimelineSelection& selection = state.selection;
  const auto outline = [&](const QRectF& box, Argb with, int width) {
    if (box.isEmpty()) return;
    painter.setPen(QPen(color(with), width));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(box.intersected(QRectF(frame.geometry.body).adjusted(-4, -4, 4, 4))
                         .adjusted(width / 2.0, width / 2.0, -width / 2.0, -width / 2.0));
  };
  const std::vector<std::uint32_t>& marked = selection.marked_slices();
  for (std::size_t i = 0; i < std::min(marked.size(), kMostOutlinedHits); ++i) {
    const TimelineTracks& tracks = *frame.content.tracks;
    if (tracks.end_of(marked[i]) < frame.window.from ||
        tracks.start_of(marked[i]) > frame.window.to)
      continue;
    outline(box_of_slice(frame, false, marked[i]), c.cursor_b, 1);
  }
  if (selection.area()) paint_area(painter, frame, *selection.area(), c);
  if (hovered.bubble && !hovered.slice) outline(box_of(frame, *hovered.bubble), c.hover, 1);
  if (hovered.slice && hovered.lane)
    outline(
        box_of_slice(frame, frame.arrangement->lanes[*hovered.lane].is_measured, *hovered.slice),
        c.hover, 1);
  if (selection.slice()) outline(box_of_slice(frame, false, *selection.slice()), c.selection, 2);
  if (selection.measured_slice())
    outline(box_of_slice(frame, true, *selection.measured_slice()), c.selection, 2);
  if (selection.bubble()) outline(box_of(frame, *selection.bubble()), c.selection, 2);
}

/// Collapsed streams hide the ends of messages: follows the dependency to a visible pass.
std::uint32_t visible_end(const TimelineFrame& frame, std::uint32_t slice, bool back) {
  const TimelineCauses& causes = *frame.content.causes;
  std::uint32_t at = slice;
  constexpr int kMostSteps = 4;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    if (!box_of_slice(frame, false, at).isNull()) return at;
    std::uint32_t next = kNoSlice;
    if (back) {
      next = causes.binding[at];
    } else {
      for (const std::uint32_t after : causes.after_of(at))
        if (causes.binding[after] == at || next == kNoSlice) next = after;
    }
    if (next == kNoSlice) return at;
    at = next;
  }
  return at;
}

void paint_arrow(QPainter& painter, const QRectF& from, const QRectF& to, bool binds,
                 const TimelineColors& colors) {
  const QPointF begin(from.right(), from.center().y()), end(to.left(), to.center().y());
  const double bend = std::clamp(std::abs(end.x() - begin.x()) / 2, 12.0, 80.0);
  QPainterPath path(begin);
  path.cubicTo(begin + QPointF(bend, 0), end - QPointF(bend, 0), end);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(color(colors.background), binds ? 4.5 : 3));
  painter.drawPath(path);
  painter.setPen(QPen(color(colors.arrow), binds ? 2 : 1));
  painter.drawPath(path);
  painter.setBrush(color(colors.arrow));
  painter.drawPolygon(QPolygonF({end, end + QPointF(-7, -3.5), end + QPointF(-7, 3.5)}));
}

/// Paints the arrows of the selected slice only: all arrows at once would be noise.
void paint_arrows(QPainter& painter, const TimelineFrame& frame, const TimelineState& state) {
  const auto selected = state.selection.slice_or_after_bubble();
  const TimelineCauses* causes = frame.content.causes.get();
  if (!selected || *selected >= frame.content.tracks->slice_count() || causes == nullptr) return;
  const std::size_t slice = *selected;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  int left = kMostArrows;
  const auto arrow = [&](std::size_t from, std::size_t to, bool binds) {
    const TimelineTracks& tracks = *frame.content.tracks;
    if (tracks.row_of(from) == tracks.row_of(to) || left-- <= 0) return;
    const QRectF a = box_of_slice(frame, false, from), b = box_of_slice(frame, false, to);
    if (!a.isNull() && !b.isNull()) paint_arrow(painter, a, b, binds, state.appearance.colors());
  };
  for (const std::uint32_t before : causes->before_of(slice))
    arrow(visible_end(frame, before, true), slice, before == causes->binding[slice]);
  for (const std::uint32_t after : causes->after_of(slice))
    arrow(slice, visible_end(frame, after, false), causes->binding[after] == slice);
  painter.restore();
}

/// The time between the cursors, in the middle between them on the ruler.
void paint_distance(QPainter& painter, const TimelineFrame& frame, Nanoseconds a, Nanoseconds b,
                    const TimelineColors& colors) {
  const QString text = TimelineText::tr("Δt %1").arg(
      QString::fromStdString(format_time(std::max(a, b) - std::min(a, b))));
  const int width = QFontMetrics(painter.font()).horizontalAdvance(text) + 12;
  const double middle = std::clamp((frame.window.pixel_of(a) + frame.window.pixel_of(b)) / 2,
                                   width / 2.0, frame.window.width - width / 2.0);
  const QRectF place(frame.geometry.body.left() + middle - width / 2.0,
                     frame.geometry.ruler.top() + 1, width, 14);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color(colors.text));
  painter.drawRoundedRect(place, 3, 3);
  painter.setPen(color(colors.background));
  painter.drawText(place, Qt::AlignCenter, text);
}

void paint_cursors(QPainter& painter, const TimelineFrame& frame, const TimelineState& state,
                   const QFont& font) {
  const TimelineColors& c = state.appearance.colors();
  const TimelineGeometry& geometry = frame.geometry;
  painter.save();
  painter.setClipRect(geometry.body.united(geometry.ruler), Qt::IntersectClip);
  QFont small = font;
  small.setPixelSize(10);
  painter.setFont(small);
  const auto cursor = [&](const std::optional<Nanoseconds>& at, Argb with, const QString& name) {
    if (!at) return;
    const int x = geometry.body.left() + static_cast<int>(std::lround(frame.window.pixel_of(*at)));
    painter.setPen(QPen(color(with), 1));
    painter.drawLine(x, geometry.ruler.top() + 6, x, geometry.body.bottom());
    painter.setBrush(color(with));
    const QRect flag(x - 7, geometry.ruler.top() + 1, 14, 13);
    painter.drawRoundedRect(flag, 2, 2);
    painter.setPen(color(text_on(with)));
    painter.drawText(flag, Qt::AlignCenter, name);
  };
  const auto a = state.selection.cursor_a(), b = state.selection.cursor_b();
  cursor(a, c.cursor_a, QStringLiteral("A"));
  cursor(b, c.cursor_b, QStringLiteral("B"));
  const auto is_visible = [&](Nanoseconds at) {
    return frame.window.from <= at && at <= frame.window.to;
  };
  if (a && b && (is_visible(*a) || is_visible(*b))) paint_distance(painter, frame, *a, *b, c);
  painter.restore();
}

/// Lines at the starts of training steps, unless they would be too close to be of use.
void paint_steps(QPainter& painter, const TimelineFrame& frame, const TimelineColors& colors) {
  constexpr double kClosestSteps = 24;
  const std::vector<Nanoseconds>& steps = frame.content.tracks->iterations;
  if (steps.size() < 2) return;
  const auto count = static_cast<double>(steps.size() - 1);
  const double apart = (frame.window.pixel_of(steps.back()) - frame.window.pixel_of(steps.front()));
  if (apart / count < kClosestSteps) return;
  painter.setPen(QPen(color(colors.cursor_a), 1, Qt::DashLine));
  for (const Nanoseconds step : steps) {
    const int x =
        frame.geometry.body.left() + static_cast<int>(std::lround(frame.window.pixel_of(step)));
    painter.drawLine(x, frame.geometry.body.top(), x, frame.geometry.body.bottom());
  }
}

void paint_drag(QPainter& painter, const TimelineFrame& frame, const TimelineState& state,
                const TimelinePointer& pointer) {
  const TimelineColors& c = state.appearance.colors();
  if (pointer.drag() == TimelineDrag::kArea) {
    painter.setPen(QPen(color(c.selection), 1, Qt::DashLine));
    painter.setBrush(color(c.area));
    painter.drawRect(QRect(pointer.drag_from(), pointer.drag_to())
                         .normalized()
                         .intersected(frame.geometry.body));
  }
  if (pointer.drag() == TimelineDrag::kOrder && pointer.pressed().slice) {
    const std::size_t slice = *pointer.pressed().slice;
    QRectF box = box_of_slice(frame, false, slice);
    box.translate(pointer.drag_to().x() - pointer.drag_from().x(), 0);
    const bool is_valid = state.editing.order_problem().isEmpty();
    QColor fill = color(c.slice[static_cast<std::size_t>(frame.content.tracks->kind[slice])]);
    fill.setAlpha(190);
    painter.setBrush(fill);
    painter.setPen(QPen(color(is_valid ? c.faster : c.slower), 2));
    painter.drawRect(box);
  }
}

}  // namespace

void paint_overlay(QPainter& painter, const TimelineOverlay& overlay) {
  const TimelineState& state = overlay.state;
  const TimelinePointer& pointer = overlay.pointer;
  const TimelineFrame frame = state.frame();
  const QRect& body = frame.geometry.body;
  painter.save();
  painter.setClipRect(body, Qt::IntersectClip);
  paint_steps(painter, frame, state.appearance.colors());
  paint_outlines(painter, frame, state, pointer.hovered());
  if (state.appearance.shows_arrows()) paint_arrows(painter, frame, state);
  painter.restore();
  paint_cursors(painter, frame, state, overlay.font);
  paint_drag(painter, frame, state, pointer);
  if (!overlay.follows_pointer || !pointer.position() || !body.contains(*pointer.position()))
    return;
  QColor cross = color(state.appearance.colors().faint_text);
  cross.setAlpha(90);
  painter.setPen(QPen(cross, 1));
  painter.drawLine(pointer.position()->x(), body.top(), pointer.position()->x(), body.bottom());
  if (pointer.drag() == TimelineDrag::kNone)
    paint_tip(painter, state, pointer, overlay.font, overlay.size);
}

}  // namespace meshwright::gui
