/// Paints what changes with every mouse move: hovered and selected items, arrows, cursors, dragged
/// items, cross hair and tip.
#pragma once

#include <QFont>
#include <QSize>

class QPainter;

namespace meshwright::gui {

struct TimelineState;
class TimelinePointer;

struct TimelineOverlay {
  const TimelineState& state;
  const TimelinePointer& pointer;
  QFont font;                   ///< of the widget
  QSize size;                   ///< of the widget
  bool follows_pointer = true;  ///< false: without cross hair and tip, as in snapshots
};

/// The state must not be empty.
void paint_overlay(QPainter& painter, const TimelineOverlay& overlay);

}  // namespace meshwright::gui
