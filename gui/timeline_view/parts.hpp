/// What only the widget itself needs; for its own source files.
#pragma once

#include <QScrollBar>
#include <QString>

#include "gui/timeline_view/actions.hpp"
#include "gui/timeline_view/glide.hpp"
#include "gui/timeline_view/held_keys.hpp"
#include "gui/timeline_view/images.hpp"
#include "gui/timeline_view/pointer.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

struct TimelineView::Parts {
  Parts(TimelineView& view, TimelineState& state)
      : pointer(state), actions(view, state, pointer), scroll_bar(Qt::Vertical, &view) {}

  QString placeholder;
  TimelinePointer pointer;
  TimelineActions actions;
  HeldKeys keys;
  TimelineGlide glide;
  TimelineImages images;
  QScrollBar scroll_bar;
  bool is_changing_tracks = false;  ///< the next image is requested when that is done
};

}  // namespace meshwright::gui
