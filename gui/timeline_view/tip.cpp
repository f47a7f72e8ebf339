#include "gui/timeline_view/tip.hpp"

#include <QFontMetrics>
#include <QLocale>
#include <QPainter>
#include <algorithm>

#include "gui/timeline_view/pointer.hpp"
#include "gui/timeline_view/state.hpp"
#include "gui/timeline_view/words.hpp"

namespace meshwright::gui {
namespace {

QFont tip_font(const QFont& font) {
  QFont small = font;
  small.setPixelSize(12);
  return small;
}

/// Empty without text or pointer.
QRect tip_place(const QString& text, const TimelineState& state, const TimelinePointer& pointer,
                const QFont& font, QSize size) {
  if (text.isEmpty() || !pointer.position()) return {};
  const QRect room(0, 0, std::min(460, state.geometry.body.width() - 20), 400);
  QRect place = QFontMetrics(tip_font(font)).boundingRect(room, Qt::TextWordWrap, text);
  place = place.adjusted(-8, -5, 8, 5);
  place.moveTopLeft(*pointer.position() + QPoint(14, 18));
  if (place.right() > size.width() - 4) place.moveRight(size.width() - 4);
  if (place.bottom() > size.height() - 4) place.moveBottom(pointer.position()->y() - 10);
  return place;
}

/// The slice, or for a pixel with several slices its composition.
QString slice_or_mixture(const TimelineFrame& frame, const TimelinePointer& pointer,
                         const Lane& lane, std::size_t slice) {
  const TimelineTracks& tracks = frame.content.tracks_of(lane);
  const TimeWindow window = frame.window_of(lane);
  if (pointer.position() &&
      static_cast<double>(tracks.duration_of(slice).value) < 2 * window.nanoseconds_per_pixel()) {
    const double x = pointer.position()->x() - TimelineGeometry::kGutter;
    return describe_mixture(tracks, static_cast<std::size_t>(lane.row), window.time_at(x),
                            window.time_at(x + 1));
  }
  return describe_slice(tracks, lane.is_measured ? nullptr : frame.content.causes.get(), slice);
}

}  // namespace

QString tip_text(const TimelineState& state, const TimelinePointer& pointer) {
  const TimelineEditing& editing = state.editing;
  if (pointer.drag() == TimelineDrag::kSlowdown)
    return TimelineText::tr("stage time × %1").arg(QLocale().toString(editing.slowdown(), 'f', 2));
  if (pointer.drag() == TimelineDrag::kOrder) {
    if (!editing.order()) return TimelineText::tr("same position");
    return editing.order_problem().isEmpty()
               ? TimelineText::tr("move to position %1").arg(editing.order()->to + 1)
               : editing.order_problem();
  }
  const TimelineTarget& hovered = pointer.hovered();
  if (!hovered.lane) return {};
  const TimelineFrame frame = state.frame();
  const Lane& lane = frame.arrangement->lanes[*hovered.lane];
  if (hovered.slice) return slice_or_mixture(frame, pointer, lane, *hovered.slice);
  if (!hovered.bubble) return {};
  return describe_bubble(frame.content.tracks_of(lane),
                         lane.is_measured ? nullptr : frame.content.causes.get(), *hovered.bubble);
}

void paint_tip(QPainter& painter, const TimelineState& state, const TimelinePointer& pointer,
               const QFont& font, QSize size) {
  const QString text = tip_text(state, pointer);
  const QRect place = tip_place(text, state, pointer, font, size);
  if (place.isEmpty()) return;
  const TimelineColors& c = state.appearance.colors();
  painter.setFont(tip_font(font));
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(color(c.grid), 1));
  painter.setBrush(color(c.background));
  painter.drawRoundedRect(QRectF(place), 4, 4);
  painter.setPen(color(c.text));
  painter.drawText(place.adjusted(8, 5, -8, -5), Qt::TextWordWrap, text);
  painter.setRenderHint(QPainter::Antialiasing, false);
}

QRegion hover_region(const TimelineState& state, const TimelinePointer& pointer, const QFont& font,
                     QSize size) {
  if (!pointer.position() || state.is_empty()) return {};
  const TimelineFrame frame = state.frame();
  const QRect& body = frame.geometry.body;
  QRegion region(QRect(pointer.position()->x() - 2, body.top(), 5, body.height()));
  region += tip_place(tip_text(state, pointer), state, pointer, font, size).adjusted(-2, -2, 2, 2);
  const TimelineTarget& hovered = pointer.hovered();
  QRectF box;
  if (hovered.bubble) {
    box = box_of(frame, *hovered.bubble);
  } else if (hovered.slice) {
    box = box_of_slice(frame, frame.arrangement->lanes[*hovered.lane].is_measured, *hovered.slice);
  }
  region += box.intersected(QRectF(QRect(QPoint(), size))).toAlignedRect().adjusted(-2, -2, 2, 2);
  return region;
}

}  // namespace meshwright::gui
