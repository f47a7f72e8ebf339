#include "gui/session/preferences.hpp"

#include <QSettings>
#include <algorithm>
#include <array>

namespace meshwright::gui {
namespace {

constexpr std::array<const char*, kThemeChoiceCount> kThemeNames{"system", "light", "dark",
                                                                 "high-contrast"};
constexpr double kSmallestFont = 0.75, kLargestFont = 2.0;

template <class Enum>
Enum read_enum(const QSettings& settings, const QString& key, Enum fallback, int count) {
  const int value = settings.value(key, static_cast<int>(fallback)).toInt();
  return value >= 0 && value < count ? static_cast<Enum>(value) : fallback;
}

/// The settings file may have been edited by hand: invalid values fall back to the defaults.
PreferenceValues read_values() {
  QSettings settings;
  settings.beginGroup("preferences");
  PreferenceValues v;
  v.theme = read_enum(settings, "theme", v.theme, kThemeChoiceCount);
  v.palette = read_enum(settings, "palette", v.palette, kSlicePaletteCount);
  v.time_unit = read_enum(settings, "time_unit", v.time_unit, kTimeUnitCount);
  v.font_scale =
      std::clamp(settings.value("font_scale", 1.0).toDouble(), kSmallestFont, kLargestFont);
  v.language = settings.value("language").toString();
  v.reduced_motion = settings.value("reduced_motion", false).toBool();
  settings.beginGroup("keys");
  for (const QString& name : settings.childKeys())
    v.keys[name] = QKeySequence::fromString(settings.value(name).toString());
  return v;
}

void write_values(const PreferenceValues& v) {
  QSettings settings;
  settings.beginGroup("preferences");
  settings.setValue("theme", static_cast<int>(v.theme));
  settings.setValue("palette", static_cast<int>(v.palette));
  settings.setValue("time_unit", static_cast<int>(v.time_unit));
  settings.setValue("font_scale", v.font_scale);
  settings.setValue("language", v.language);
  settings.setValue("reduced_motion", v.reduced_motion);
  settings.remove("keys");
  settings.beginGroup("keys");
  for (const auto& [name, keys] : v.keys) settings.setValue(name, keys.toString());
}

}  // namespace

QString name_of(ThemeChoice theme) { return kThemeNames.at(static_cast<std::size_t>(theme)); }

std::optional<ThemeChoice> theme_from_name(const QString& name) {
  for (std::size_t i = 0; i < kThemeNames.size(); ++i)
    if (name == kThemeNames.at(i)) return static_cast<ThemeChoice>(i);
  return std::nullopt;
}

Preferences::Preferences(QObject* parent) : QObject(parent), values_(read_values()) {}

void Preferences::set(const PreferenceValues& values) {
  if (values == values_) return;
  values_ = values;
  write_values(values_);
  Q_EMIT changed();
}

void Preferences::override_for_now(const PreferenceValues& values) {
  if (values == values_) return;
  values_ = values;
  Q_EMIT changed();
}

}  // namespace meshwright::gui
