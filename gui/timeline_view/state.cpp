#include "gui/timeline_view/state.hpp"

namespace meshwright::gui {

TimelineScene TimelineState::scene() const {
  TimeWindow window = viewport.window();
  window.width = geometry.body.width();
  return {.content = content,
          .arrangement = lanes.arrangement(),
          .fonts = appearance.label_fonts(),
          .window = window,
          .height = geometry.body.height(),
          .scroll = lanes.scroll(),
          .style = appearance.style()};
}

}  // namespace meshwright::gui
