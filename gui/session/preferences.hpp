/// User preferences: appearance, units, shortcuts, language.
/// Stored locally with QSettings; nothing is sent anywhere.
#pragma once

#include <QKeySequence>
#include <QObject>
#include <QString>
#include <array>
#include <map>

#include "gui/text/number_text.hpp"
#include "gui/timeline/colors.hpp"

namespace meshwright::gui {

enum class ThemeChoice : std::uint8_t { kSystem, kLight, kDark, kHighContrast };
inline constexpr int kThemeChoiceCount = 4;
QString name_of(ThemeChoice theme);  ///< "system", "light", "dark", "high-contrast"
std::optional<ThemeChoice> theme_from_name(const QString& name);

struct PreferenceValues {
  ThemeChoice theme = ThemeChoice::kSystem;
  SlicePalette palette = SlicePalette::kOkabeIto;
  double font_scale = 1.0;  ///< 0.75 to 2
  TimeUnit time_unit = TimeUnit::kAuto;
  QString language;  ///< "en", "zh_CN"; empty for the system language
  bool reduced_motion = false;
  /// Shortcuts by action name, where they differ from the defaults.
  std::map<QString, QKeySequence> keys;
  friend bool operator==(const PreferenceValues&, const PreferenceValues&) = default;
};

/// Names in PreferenceValues::keys for continuous movement while a key is held: zoom in, zoom out,
/// left, right. The defaults are the keys at the physical positions of W, S, A, D.
inline constexpr std::array<const char*, 4> kHeldKeyNames{"hold.in", "hold.out", "hold.left",
                                                          "hold.right"};

class Preferences : public QObject {
  Q_OBJECT
 public:
  /// Reads the stored preferences.
  explicit Preferences(QObject* parent = nullptr);
  const PreferenceValues& values() const { return values_; }
  /// Applies and stores them.
  void set(const PreferenceValues& values);
  /// Applies command-line overrides for this run, without storing them.
  void override_for_now(const PreferenceValues& values);

 Q_SIGNALS:
  void changed();

 private:
  PreferenceValues values_;
};

}  // namespace meshwright::gui
