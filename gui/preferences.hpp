/// What a user sets once: looks, units, keys, language. Kept between starts; nothing is sent
/// anywhere.
#pragma once

#include <QKeySequence>
#include <QObject>
#include <QString>
#include <array>
#include <map>

#include "gui/timeline_colours.hpp"

namespace meshwright::gui {

enum class ThemeChoice : std::uint8_t { kSystem, kLight, kDark, kHighContrast };
inline constexpr int kThemeChoiceCount = 4;
QString name_of(ThemeChoice theme);  ///< "system", "light", "dark", "high-contrast"
std::optional<ThemeChoice> theme_from_name(const QString& name);

/// What times are shown in; kAuto takes the unit that leaves one to three digits in front.
enum class TimeUnit : std::uint8_t { kAuto, kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };
inline constexpr int kTimeUnitCount = 5;

struct PreferenceValues {
  ThemeChoice theme = ThemeChoice::kSystem;
  SlicePalette palette = SlicePalette::kOkabeIto;
  double font_scale = 1.0;  ///< 0.75 to 2
  TimeUnit time_unit = TimeUnit::kAuto;
  QString language;  ///< "en", "zh_CN"; empty: the system's
  bool reduced_motion = false;
  /// Keys by the action's name, where they are not the action's own.
  std::map<QString, QKeySequence> keys;
  friend bool operator==(const PreferenceValues&, const PreferenceValues&) = default;
};

/// Names in PreferenceValues::keys of what a timeline does while a key is held: nearer, further,
/// earlier, later. Without an entry it is the key at the place of W, S, A, D.
inline constexpr std::array<const char*, 4> kHeldKeyNames{"hold.in", "hold.out", "hold.left",
                                                          "hold.right"};

class Preferences : public QObject {
  Q_OBJECT
 public:
  /// Reads what the last run kept.
  explicit Preferences(QObject* parent = nullptr);
  const PreferenceValues& values() const { return values_; }
  /// Keeps them as well.
  void set(const PreferenceValues& values);
  /// For this run only: what the command line says.
  void override_for_now(const PreferenceValues& values);

 Q_SIGNALS:
  void changed();

 private:
  PreferenceValues values_;
};

}  // namespace meshwright::gui
