/// Everything a TimelineView shows, apart from pixels: content, where it is, what is selected.
#pragma once

#include <QSize>

#include "gui/timeline/painter.hpp"
#include "gui/timeline_view/appearance.hpp"
#include "gui/timeline_view/editing.hpp"
#include "gui/timeline_view/frame.hpp"
#include "gui/timeline_view/lanes.hpp"
#include "gui/timeline_view/navigation.hpp"
#include "gui/timeline_view/selection.hpp"
#include "gui/timeline_view/viewport.hpp"

namespace meshwright::gui {

struct TimelineState {
  TimelineContent content;
  TimelineAppearance appearance;
  TimelineViewport viewport{content};
  TimelineLanes lanes{content};
  TimelineSelection selection{content};
  TimelineNavigation navigation{content, lanes, viewport, selection};
  TimelineEditing editing;
  TimelineGeometry geometry;

  bool is_empty() const { return content.tracks == nullptr || lanes.arrangement() == nullptr; }
  TimelineFrame frame() const {
    return {.content = content,
            .arrangement = lanes.arrangement().get(),
            .window = viewport.window(),
            .scroll = lanes.scroll(),
            .geometry = geometry};
  }
  /// The rows as they are to be painted.
  TimelineScene scene() const;
};

}  // namespace meshwright::gui
