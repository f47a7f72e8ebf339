#include "gui/timeline/ruler.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace meshwright::gui {
namespace {

struct Unit {
  std::int64_t nanoseconds;
  const char* name;
};
constexpr std::array<Unit, 4> kUnits{
    {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "µs"}, {1, "ns"}}};

const Unit& unit_for(std::int64_t nanoseconds) {
  for (const Unit& unit : kUnits)
    if (std::abs(nanoseconds) >= unit.nanoseconds) return unit;
  return kUnits.back();
}

std::string without_trailing_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.ends_with('.')) number.pop_back();
  return number;
}

}  // namespace

std::string format_time(Nanoseconds time, int digits) {
  const Unit& unit = unit_for(time.value);
  const double value = static_cast<double>(time.value) / static_cast<double>(unit.nanoseconds);
  const int whole = value == 0 ? 1 : static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  const int decimals = unit.nanoseconds == 1 ? 0 : std::max(0, digits - whole);
  return fmt::format("{} {}", without_trailing_zeros(fmt::format("{:.{}f}", value, decimals)),
                     unit.name);
}

bool parse_time(std::string_view text, Nanoseconds& time) {
  const auto skip = [&] {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  };
  skip();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  skip();
  if (text == "us") text = "µs";
  for (const Unit& unit : kUnits) {
    if (text != unit.name) continue;
    const double nanoseconds = value * static_cast<double>(unit.nanoseconds);
    if (std::abs(nanoseconds) > 4e18) return false;
    time = Nanoseconds(std::llround(nanoseconds));
    return true;
  }
  return false;
}

std::vector<RulerMark> ruler_marks(const TimeWindow& window, double apart) {
  std::vector<RulerMark> marks;
  if (window.width <= 0 || window.span() <= Nanoseconds(0)) return marks;
  const double wanted = std::max(1.0, window.nanoseconds_per_pixel() * apart);
  const double power = std::pow(10.0, std::floor(std::log10(wanted)));
  const double factor = wanted <= power       ? 1
                        : wanted <= 2 * power ? 2
                        : wanted <= 5 * power ? 5
                                              : 10;
  const auto step = static_cast<std::int64_t>(std::llround(factor * power));
  const std::int64_t small = step % 5 == 0 ? step / 5 : step % 2 == 0 ? step / 2 : step;
  const std::int64_t first =
      window.from.value >= 0 ? (window.from.value + small - 1) / small : window.from.value / small;
  // Enough digits to distinguish neighboring labels.
  const double largest = std::max({std::abs(static_cast<double>(window.from.value)),
                                   std::abs(static_cast<double>(window.to.value)), 1.0});
  const int digits =
      std::max(3, static_cast<int>(std::ceil(std::log10(largest / static_cast<double>(step)))) + 2);
  for (std::int64_t i = first; i * small <= window.to.value; ++i) {
    const Nanoseconds time(i * small);
    const bool large = time.value % step == 0;
    marks.push_back({time, large ? format_time(time, digits) : std::string()});
  }
  return marks;
}

}  // namespace meshwright::gui
