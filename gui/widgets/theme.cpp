#include "gui/widgets/theme.hpp"

#include <QApplication>
#include <QFont>
#include <QStyle>
#include <QStyleFactory>

#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

/// The base colors of a theme.
struct Tones {
  QColor window, base, alternate, button, text, faint, border, accent, on_accent, link;
};

Tones tones_of(ThemeChoice theme) {
  if (theme == ThemeChoice::kDark)
    return {"#1e2127", "#16181d", "#1b1e24", "#2b3038", "#e6e8ec",
            "#9aa2ae", "#3a404b", "#3d9be0", "#06121c", "#6cb8f0"};
  if (theme == ThemeChoice::kHighContrast)
    return {"#000000", "#141414", "#1c1c1c", "#4a4a4a", "#ffffff",
            "#ffffff", "#ffffff", "#ffd500", "#000000", "#6cd0ff"};
  return {"#f4f5f7", "#ffffff", "#f7f8fa", "#ffffff", "#1b1f26",
          "#5a6472", "#c9ced6", "#0072b2", "#ffffff", "#005b8f"};
}

/// Refines what Fusion leaves plain; sizes follow the font.
QString style_sheet(const Tones& t) {
  return QString(R"(
QToolTip { color: %1; background: %2; border: 1px solid %3; padding: 4px; }
QMainWindow::separator { background: %3; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: %4; }
QDockWidget { titlebar-close-icon: none; titlebar-normal-icon: none; }
QDockWidget::title { background: %5; padding: 6px 8px; text-align: left; border-bottom: 1px solid %3; }
QTabBar#screens::tab { padding: 7px 14px; border: none; border-bottom: 2px solid transparent; color: %6; }
QTabBar#screens::tab:selected { color: %1; border-bottom: 2px solid %4; }
QTabBar#screens::tab:hover:!selected { color: %1; }
QTabBar#screens::tab:focus { border-bottom: 2px dashed %4; }
QTabBar#screens { background: %5; }
QStatusBar { background: %5; border-top: 1px solid %3; }
QStatusBar::item { border: none; }
QToolBar { background: %5; border: none; border-bottom: 1px solid %3; spacing: 4px; padding: 3px; }
QLabel[role="title"] { font-size: 20pt; font-weight: 600; }
QLabel[role="heading"] { font-weight: 600; }
QLabel[role="subtitle"] { font-size: 14pt; font-weight: 600; }
QLabel[role="faint"] { color: %6; }
QLabel[role="problem"] { color: %7; }
QGroupBox { font-weight: 600; border: none; border-top: 1px solid %3; margin-top: 10px; padding-top: 10px; }
QGroupBox::title { subcontrol-origin: margin; left: 0px; padding: 0 6px 0 0; }
QCheckBox::indicator:unchecked, QRadioButton::indicator:unchecked { border: 1px solid %6; border-radius: 2px; background: %8; width: 12px; height: 12px; }
QFrame[role="card"] { background: %8; border: 1px solid %3; border-radius: 6px; }
QFrame[role="drop"] { border: 2px dashed %3; border-radius: 8px; }
QFrame[role="drop"][active="true"] { border-color: %4; }
QHeaderView::section { background: %5; border: none; border-right: 1px solid %3; border-bottom: 1px solid %3; padding: 4px 6px; }
)")
      .arg(t.text.name(), t.base.name(), t.border.name(), t.accent.name(), t.window.name(),
           t.faint.name(), t.window.lightness() < 128 ? "#ffb454" : "#a33b00")
      .arg(t.base.name());
}

}  // namespace

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightness() <
         palette.color(QPalette::WindowText).lightness();
}

ThemeChoice resolved(ThemeChoice choice) {
  if (choice != ThemeChoice::kSystem) return choice;
  return is_dark(QApplication::style()->standardPalette()) ? ThemeChoice::kDark
                                                           : ThemeChoice::kLight;
}

QPalette palette_of(ThemeChoice theme) {
  const Tones t = tones_of(resolved(theme));
  QPalette p;
  p.setColor(QPalette::Window, t.window);
  p.setColor(QPalette::WindowText, t.text);
  p.setColor(QPalette::Base, t.base);
  p.setColor(QPalette::AlternateBase, t.alternate);
  p.setColor(QPalette::Text, t.text);
  p.setColor(QPalette::PlaceholderText, t.faint);
  p.setColor(QPalette::Button, t.button);
  p.setColor(QPalette::ButtonText, t.text);
  p.setColor(QPalette::BrightText, t.text);
  p.setColor(QPalette::ToolTipBase, t.base);
  p.setColor(QPalette::ToolTipText, t.text);
  p.setColor(QPalette::Highlight, t.accent);
  p.setColor(QPalette::HighlightedText, t.on_accent);
  p.setColor(QPalette::Link, t.link);
  p.setColor(QPalette::LinkVisited, t.link);
  p.setColor(QPalette::Light, t.button.lighter(120));
  p.setColor(QPalette::Midlight, t.border.lighter(110));
  p.setColor(QPalette::Mid, t.border);
  p.setColor(QPalette::Dark, t.border.darker(130));
  p.setColor(QPalette::Shadow, QColor(0, 0, 0));
  // High contrast has no faint text: disabled controls also differ in their background.
  const bool is_high_contrast = resolved(theme) == ThemeChoice::kHighContrast;
  for (const QPalette::ColorRole role :
       {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, is_high_contrast ? QColor("#b0b0b0") : QColor(t.faint));
  if (is_high_contrast) p.setColor(QPalette::Disabled, QPalette::Button, t.window);
  return p;
}

void apply_theme(QApplication& application, const PreferenceValues& values) {
  static const double kOwnPointSize = QApplication::font().pointSizeF();
  // Each call below visits all widgets, so skip them if nothing has changed.
  constexpr const char* kApplied = "meshwright_theme";
  const QString theme =
      QString("%1 %2").arg(static_cast<int>(resolved(values.theme))).arg(values.font_scale);
  if (application.property(kApplied) == theme) return;
  application.setProperty(kApplied, theme);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QFont font = QApplication::font();
  font.setPointSizeF(kOwnPointSize * values.font_scale);
  QApplication::setFont(font);
  QApplication::setPalette(palette_of(values.theme));
  application.setStyleSheet(style_sheet(tones_of(resolved(values.theme))));
}

TimelineColors timeline_colors_of(const PreferenceValues& values) {
  switch (resolved(values.theme)) {
    case ThemeChoice::kDark:
      return dark_colors(values.palette);
    case ThemeChoice::kHighContrast:
      return high_contrast_colors();
    case ThemeChoice::kLight:
    case ThemeChoice::kSystem:
      break;
  }
  return light_colors(values.palette);
}

void apply_preferences(TimelineView& view, const PreferenceValues& values) {
  view.appearance().set_theme(timeline_colors_of(values));
  view.appearance().set_reduced_motion(values.reduced_motion);
  std::array<int, kHeldKeyNames.size()> held{};
  for (std::size_t i = 0; i < held.size(); ++i)
    if (const auto own = values.keys.find(kHeldKeyNames[i]);
        own != values.keys.end() && !own->second.isEmpty())
      held[i] = own->second[0].key();
  view.set_held_keys(held);
}

void follow_preferences(TimelineView& view, const Preferences& preferences) {
  const auto apply = [&view, &preferences] { apply_preferences(view, preferences.values()); };
  QObject::connect(&preferences, &Preferences::changed, &view, apply);
  apply();
}

ChartColors chart_colors(const QPalette& palette) {
  const bool dark = is_dark(palette);
  ChartColors c;
  c.background = palette.color(QPalette::Base);
  c.panel = palette.color(QPalette::Window);
  c.text = palette.color(QPalette::Text);
  c.faint_text = palette.color(QPalette::PlaceholderText);
  c.grid = palette.color(QPalette::Mid);
  c.grid.setAlphaF(0.5F);
  c.axis = palette.color(QPalette::Mid);
  c.accent = palette.color(QPalette::Highlight);
  c.good = dark ? QColor("#2bc295") : QColor("#00785a");
  c.bad = dark ? QColor("#ff8a4c") : QColor("#b04500");
  c.series = {dark ? "#3d9be0" : "#0072b2",
              "#e69f00",
              "#009e73",
              "#cc79a7",
              "#56b4e9",
              "#d55e00",
              "#f0e442",
              "#999999"};
  return c;
}

}  // namespace meshwright::gui
