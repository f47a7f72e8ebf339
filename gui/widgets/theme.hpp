/// Appearance: palettes for Qt's Fusion style (light, dark, high contrast) and matching chart
/// colors. Colors are Okabe–Ito (colorblind-safe), and no meaning is conveyed by color alone.
#pragma once

#include <QColor>
#include <QPalette>
#include <array>

#include "gui/session/preferences.hpp"
#include "gui/timeline/colors.hpp"

class QApplication;

namespace meshwright::gui {

class TimelineView;

/// Resolves kSystem: dark if the system palette is dark.
ThemeChoice resolved(ThemeChoice choice);
/// True if windows are darker than their text. Qt 6.4 has no other way to query this.
bool is_dark(const QPalette& palette);

QPalette palette_of(ThemeChoice theme);
/// Sets style, palette, font and style sheet of the application.
void apply_theme(QApplication& application, const PreferenceValues& values);
/// Timeline colors for the theme and palette of `values`; resolves kSystem.
TimelineColors timeline_colors_of(const PreferenceValues& values);

/// Applies colors, motion and held keys to a timeline, now and after every change.
void follow_preferences(TimelineView& view, const Preferences& preferences);
/// The same, once.
void apply_preferences(TimelineView& view, const PreferenceValues& values);

/// Colors of charts and maps.
struct ChartColors {
  QColor background, text, faint_text, grid, axis;
  QColor accent;                 ///< the selection
  QColor good, bad;              ///< always used together with a sign or a word
  QColor panel;                  ///< a card on the background
  std::array<QColor, 8> series;  ///< Okabe–Ito, ordered for maximum contrast between neighbors
};
ChartColors chart_colors(const QPalette& palette);

}  // namespace meshwright::gui
