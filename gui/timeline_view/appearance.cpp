#include "gui/timeline_view/appearance.hpp"

#include <cmath>

namespace meshwright::gui {

void TimelineAppearance::set_theme(const TimelineColors& colors) {
  if (style_.colors == colors) return;
  style_.colors = colors;
  Q_EMIT colors_changed();
  Q_EMIT changed();
}

void TimelineAppearance::set_font(const QFont& font, double scale) {
  constexpr int kTextPixels = 11;
  QFont label = font;
  label.setPixelSize(static_cast<int>(std::lround(kTextPixels * scale)));
  style_.scale = scale;
  label_fonts_ = std::make_shared<const LabelFonts>(label);
  Q_EMIT changed();
}

void TimelineAppearance::set_critical_path_shown(bool shown) {
  style_.critical_path = shown;
  Q_EMIT changed();
}

void TimelineAppearance::set_arrows_shown(bool shown) {
  arrows_ = shown;
  Q_EMIT changed();
}

void TimelineAppearance::set_bubble_causes_shown(bool shown) {
  style_.bubble_causes = shown;
  Q_EMIT changed();
}

void TimelineAppearance::set_microbatch_colors(bool shown) {
  style_.microbatch_colors = shown;
  Q_EMIT changed();
}

}  // namespace meshwright::gui
