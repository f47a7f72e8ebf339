#include "gui/timeline_view/state.hpp"

namespace meshwright::gui {

TimelineScene TimelineState::scene() const {
  TimeWindow window = viewport.window();
  window.width = geometry.body.width();
  return {.tracks = content.tracks,
          .measured = content.measured,
          .ghost = content.ghost,
          .causes = content.causes,
          .comparison = content.comparison,
          .in_flight = content.in_flight,
          .arrangement = lanes.arrangement(),
          .font = appearance.label_font(),
          .window = window,
          .height = geometry.body.height(),
          .scroll = lanes.scroll(),
          .style = appearance.style()};
}

}  // namespace meshwright::gui
