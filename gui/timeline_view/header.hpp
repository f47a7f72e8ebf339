/// Paints what frames the rows: names in the gutter, the overview strip and the ruler.
#pragma once

#include <QFont>
#include <QImage>

class QPainter;

namespace meshwright::gui {

struct TimelineState;

/// `font` is that of the widget; the state must not be empty.
void paint_gutter(QPainter& painter, const TimelineState& state, const QFont& font);
/// Fills the header to `width` pixels; `image`: the whole timeline, see paint_queue.hpp.
void paint_overview_strip(QPainter& painter, const TimelineState& state, const QImage& image,
                          int width);
void paint_ruler(QPainter& painter, const TimelineState& state, const QFont& font);

}  // namespace meshwright::gui
