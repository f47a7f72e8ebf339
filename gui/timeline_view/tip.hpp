/// The tooltip next to the pointer, and all that follows the pointer.
#pragma once

#include <QFont>
#include <QRect>
#include <QRegion>
#include <QSize>
#include <QString>

class QPainter;

namespace meshwright::gui {

struct TimelineState;
class TimelinePointer;

/// About what is dragged, else about the item under the pointer; may be empty.
QString tip_text(const TimelineState& state, const TimelinePointer& pointer);

/// Paints the tip of a widget with this font and size.
void paint_tip(QPainter& painter, const TimelineState& state, const TimelinePointer& pointer,
               const QFont& font, QSize size);

/// What is painted because of the pointer: cross hair, tip, outline of the hovered item.
QRegion hover_region(const TimelineState& state, const TimelinePointer& pointer, const QFont& font,
                     QSize size);

}  // namespace meshwright::gui
