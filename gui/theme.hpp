/// How the program looks: palettes of Qt's Fusion style for light, dark and high contrast, and the
/// colours of charts that go with them. Colours are Okabe–Ito (told apart with every kind of colour
/// blindness); none carries a meaning alone.
#pragma once

#include <QColor>
#include <QPalette>
#include <array>

#include "gui/preferences.hpp"
#include "gui/timeline_colours.hpp"

class QApplication;

namespace meshwright::gui {

class TimelineView;

/// kSystem resolved: dark if the desktop's own palette is.
ThemeChoice resolved(ThemeChoice choice);
/// Windows darker than their text. Qt 6.4 does not say it otherwise.
bool is_dark(const QPalette& palette);

QPalette palette_of(ThemeChoice theme);
/// Style, palette, font and style sheet of the whole program.
void apply_theme(QApplication& application, const PreferenceValues& values);
/// Of the timeline, for a theme that is resolved or not.
TimelineColours timeline_colours_of(const PreferenceValues& values);

/// Colours, motion and held keys of a timeline.
void apply_preferences(TimelineView& view, const PreferenceValues& values);

/// For charts and maps.
struct ChartColours {
  QColor background, text, faint_text, grid, axis;
  QColor accent;                 ///< what is chosen
  QColor good, bad;              ///< always beside a sign or a word
  QColor panel;                  ///< a card on the background
  std::array<QColor, 8> series;  ///< Okabe–Ito, in the order in which they differ most
};
ChartColours chart_colours(const QPalette& palette);

}  // namespace meshwright::gui
