#include "cli/flags/decimal_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/flags/strategy_flags.hpp"

namespace meshwright {
namespace {
constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::size_t kMostDigits = 30;

[[noreturn]] void refuse(const std::string& flag, std::string what) {
  throw UsageError({.where = flag,
                    .what = std::move(what),
                    .hint = "write decimal numbers such as 18.522, of at most 24 h"});
}
}  // namespace

Ticks ticks_of_unit(const std::string& unit) {
  if (unit == "s") return Ticks(kTicksPerSecond);
  if (unit == "ms") return Ticks(kTicksPerSecond / 1'000);
  if (unit == "us") return Ticks(kTicksPerSecond / 1'000'000);
  if (unit == "ns") return Ticks(kTicksPerNanosecond);
  throw UsageError({.where = "--unit",
                    .what = fmt::format("invalid value '{}'", unit),
                    .hint = "expected one of: s, ms, us, ns"});
}

Ticks parse_decimal_time(const std::string& flag, const std::string& text, Ticks unit) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string whole = text.substr(0, point);
  std::string fraction = point < text.size() ? text.substr(point + 1) : "";
  if (text.starts_with('-')) refuse(flag, fmt::format("must be at least 0, got {}", text));
  if (whole.size() + fraction.size() == 0 || text.size() > kMostDigits ||
      !std::all_of(whole.begin(), whole.end(), is_digit) ||
      !std::all_of(fraction.begin(), fraction.end(), is_digit))
    refuse(flag, fmt::format("invalid value '{}': expected a number", text));
  while (fraction.ends_with('0')) fraction.pop_back();
  std::int64_t ticks = 0, scale = unit.value;
  const std::int64_t most = kSecondsPerDay * kTicksPerSecond;
  for (const char digit : whole) {
    ticks = ticks * 10 + (digit - '0');
    if (ticks > most / unit.value) refuse(flag, fmt::format("{} is longer than 24 h", text));
  }
  ticks *= unit.value;
  for (const char digit : fraction) {
    if (scale < 10) refuse(flag, fmt::format("{} has digits below one picosecond", text));
    scale /= 10;
    ticks += (digit - '0') * scale;
  }
  return Ticks(ticks);
}

std::vector<Ticks> parse_decimal_times(const std::string& flag,
                                       const std::vector<std::string>& words, Ticks unit) {
  std::vector<Ticks> times;
  for (std::string word : words) {
    std::replace(word.begin(), word.end(), ',', ' ');
    std::istringstream numbers(word);
    for (std::string number; numbers >> number;)
      times.push_back(parse_decimal_time(flag, number, unit));
  }
  return times;
}

}  // namespace meshwright
