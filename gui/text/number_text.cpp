#include "gui/text/number_text.hpp"

#include <QLocale>
#include <QRegularExpression>
#include <array>
#include <cmath>

namespace meshwright::gui {
namespace {

/// Three significant digits.
QString rounded(double value) {
  constexpr int kDigits = 3;
  if (value == 0) return QLocale().toString(0);
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return QLocale().toString(value, 'f', std::max(0, kDigits - std::max(1, before)));
}

struct Unit {
  double size;
  const char* name;
};

/// In the largest unit that gives a value of at least one.
template <std::size_t n>
QString with_unit(double value, const std::array<Unit, n>& units) {
  for (const Unit& unit : units)
    if (std::abs(value) >= unit.size * 0.9995)
      return rounded(value / unit.size) + QChar(QChar::Nbsp) + unit.name;
  return rounded(value / units.back().size) + QChar(QChar::Nbsp) + units.back().name;
}

constexpr std::array<Unit, 4> kTimes{Unit{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};

}  // namespace

QString time_text(Ticks time, TimeUnit unit) {
  const double seconds = to_seconds(time).value;
  if (unit == TimeUnit::kAuto) return with_unit(seconds, kTimes);
  constexpr std::array<std::size_t, kTimeUnitCount> kIndex{0, 3, 2, 1, 0};
  const Unit& chosen = kTimes.at(kIndex.at(static_cast<std::size_t>(unit)));
  return rounded(seconds / chosen.size) + QChar(QChar::Nbsp) + chosen.name;
}

QString bytes_text(Bytes bytes) {
  static constexpr std::array<Unit, 4> kSizes{
      Unit{1024.0 * 1024 * 1024, "GiB"}, {1024.0 * 1024, "MiB"}, {1024.0, "KiB"}, {1.0, "B"}};
  return with_unit(static_cast<double>(bytes.value), kSizes);
}

QString percent_text(double share, int decimals) {
  constexpr double kPercent = 100;
  return QLocale().toString(kPercent * share, 'f', decimals) + QChar(QChar::Nbsp) + "%";
}

QString count_text(qint64 count) { return QLocale().toString(count); }

QString rate_text(FlopsPerSecond rate) {
  static constexpr std::array<Unit, 3> kRates{
      Unit{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}};
  return with_unit(rate.value, kRates);
}

QString rate_text(BytesPerSecond rate) {
  static constexpr std::array<Unit, 3> kRates{Unit{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}};
  return with_unit(rate.value, kRates);
}

std::optional<Ticks> time_from_text(const QString& text, TimeUnit fallback) {
  static const QRegularExpression kForm(R"(^\s*([0-9]*[.,]?[0-9]+)\s*(s|ms|us|µs|ns)?\s*$)");
  const QRegularExpressionMatch match = kForm.match(text);
  if (!match.hasMatch()) return std::nullopt;
  const double number = match.captured(1).replace(',', '.').toDouble();
  const QString unit = match.captured(2);
  static constexpr std::array<double, kTimeUnitCount> kScales{1e-3, 1e-9, 1e-6, 1e-3, 1};
  double scale = kScales.at(static_cast<std::size_t>(fallback));
  if (unit == "s") scale = 1;
  if (unit == "ms") scale = 1e-3;
  if (unit == "us" || unit == "µs") scale = 1e-6;
  if (unit == "ns") scale = 1e-9;
  constexpr double kLongest = 1e5;  // seconds, about a day; Ticks hold 106 days
  if (number * scale > kLongest) return std::nullopt;
  return to_ticks(Seconds(number * scale));
}

}  // namespace meshwright::gui
