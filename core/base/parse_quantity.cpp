#include "core/base/parse_quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

/// One unit = 10^decimal * 2^binary / divisor of the base unit.
struct Unit {
  std::string_view name;
  int decimal = 0;
  int binary = 0;
  int divisor = 1;
};

/// The units of one kind of quantity.
struct Units {
  std::string_view kind;                     ///< for messages: "a size"
  std::array<std::string_view, 2> examples;  ///< suggested if the unit is missing
  std::span<const Unit> units;
};

constexpr std::array<Unit, 9> kByteUnits{{{"B"},
                                          {"kB", 3},
                                          {"MB", 6},
                                          {"GB", 9},
                                          {"TB", 12},
                                          {"KiB", 0, 10},
                                          {"MiB", 0, 20},
                                          {"GiB", 0, 30},
                                          {"TiB", 0, 40}}};
constexpr std::array<Unit, 14> kBandwidthUnits{{{"B/s"},
                                                {"kB/s", 3},
                                                {"MB/s", 6},
                                                {"GB/s", 9},
                                                {"TB/s", 12},
                                                {"KiB/s", 0, 10},
                                                {"MiB/s", 0, 20},
                                                {"GiB/s", 0, 30},
                                                {"TiB/s", 0, 40},
                                                {"bit/s", 0, 0, 8},
                                                {"kbit/s", 3, 0, 8},
                                                {"Mbit/s", 6, 0, 8},
                                                {"Gbit/s", 9, 0, 8},
                                                {"Tbit/s", 12, 0, 8}}};
constexpr std::array<Unit, 6> kFlopRateUnits{{{"FLOP/s"},
                                              {"MFLOP/s", 6},
                                              {"GFLOP/s", 9},
                                              {"TFLOP/s", 12},
                                              {"PFLOP/s", 15},
                                              {"EFLOP/s", 18}}};
constexpr std::array<Unit, 5> kTimeUnits{{{"ps", -12}, {"ns", -9}, {"us", -6}, {"ms", -3}, {"s"}}};

constexpr std::array<Unit, 2> kPowerUnits{{{"W"}, {"kW", 3}}};
constexpr std::array<Unit, 1> kPriceUnits{{{"USD"}}};

constexpr Units kBytes{"a size", {"GiB", "GB"}, kByteUnits};
constexpr Units kBandwidth{"a bandwidth", {"GB/s", "Gbit/s"}, kBandwidthUnits};
constexpr Units kFlopRate{"a FLOP rate", {"TFLOP/s", "PFLOP/s"}, kFlopRateUnits};
constexpr Units kTime{"a time", {"us", "ms"}, kTimeUnits};
constexpr Units kPower{"a power", {"W", "kW"}, kPowerUnits};
constexpr Units kPrice{"a price per hour", {"USD", "USD"}, kPriceUnits};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The text as shown in messages: truncated, and without control characters.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string out(text.substr(0, kLongest));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  return text.size() > kLongest ? out + "…" : out;
}

/// Length of a leading decimal number such as "12" or "12.5"; 0 if there is none.
std::size_t number_length(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  if (n == 0 || n + 1 >= text.size() || text[n] != '.' || !is_digit(text[n + 1])) return n;
  for (++n; n < text.size() && is_digit(text[n]);) ++n;
  return n;
}

/// "Gbps" and "Gb/s" mean bits, although "GB/s" has a smaller edit distance.
std::string bits_meant(std::string_view unit) {
  const std::string_view prefix = unit.substr(0, unit.find('b'));
  const std::string_view rest = unit.substr(prefix.size());
  if (prefix.size() > 1 || (rest != "bps" && rest != "b/s")) return "";
  return std::string(prefix) + "bit/s";
}

std::string unit_hint(std::string_view unit, const Units& expected) {
  std::vector<std::string> names;
  for (const Unit& u : expected.units) names.emplace_back(u.name);
  const std::string bits = bits_meant(unit);
  if (std::find(names.begin(), names.end(), bits) != names.end())
    return fmt::format("did you mean '{}'?", bits);
  return suggest(unit, names);
}

/// A positive decimal number and one of the expected units.
struct Parts {
  std::string_view number;
  Unit unit;
};

Parts split(std::string_view text, std::string_view where, const Units& expected) {
  const auto fail = [&](std::string what, std::string hint) -> InputError {
    return InputError(Diagnostic{std::string(where), std::move(what), std::move(hint)});
  };
  const std::string hint_form = fmt::format("write {} as \"1.5 {}\" or \"2 {}\"", expected.kind,
                                            expected.examples[0], expected.examples[1]);
  if (text.starts_with('-') && number_length(text.substr(1)) > 0)
    throw fail(fmt::format("must be positive, got {}", shown(text)), hint_form);
  const std::size_t n = number_length(text);
  if (n == 0)
    throw fail(fmt::format("invalid value '{}': expected {}", shown(text), expected.kind),
               hint_form);
  const std::string_view number = text.substr(0, n);
  std::string_view unit = text.substr(n);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  if (unit.empty())
    throw fail(fmt::format("missing unit in '{}'", shown(text)),
               fmt::format("write \"{0} {1}\" or \"{0} {2}\"", shown(number), expected.examples[0],
                           expected.examples[1]));
  const auto known = std::find_if(expected.units.begin(), expected.units.end(),
                                  [&](const Unit& u) { return u.name == unit; });
  if (known == expected.units.end())
    throw fail(fmt::format("invalid unit '{}' in '{}': expected {}", shown(unit), shown(text),
                           expected.kind),
               unit_hint(unit, expected));
  if (number.find_first_not_of("0.") == std::string_view::npos)
    throw fail(fmt::format("must be positive, got {}", shown(text)), hint_form);
  return {number, *known};
}

[[noreturn]] void refuse_range(std::string_view text, std::string_view where, const Units& kind) {
  throw InputError(Diagnostic{std::string(where),
                              fmt::format("{} is out of range for {}", shown(text), kind.kind),
                              "check the number and its unit"});
}

/// The value in the base unit, correctly rounded for decimal units: the power of ten is appended to
/// the number's text, so that "2.039 TB/s" is the double nearest to 2.039e12.
double parse_value(std::string_view text, std::string_view where, const Units& expected) {
  const Parts parts = split(text, where, expected);
  const std::string scientific = fmt::format("{}e{}", parts.number, parts.unit.decimal);
  double value = 0;
  const auto [end, error] =
      std::from_chars(scientific.data(), scientific.data() + scientific.size(), value);
  if (error != std::errc{} || end != scientific.data() + scientific.size() || value <= 0)
    refuse_range(text, where, expected);
  value = std::ldexp(value, parts.unit.binary) / parts.unit.divisor;
  if (!std::isfinite(value)) refuse_range(text, where, expected);
  return value;
}

/// Larger rates and times are mistakes; their products would overflow.
constexpr double kLargestRate = 1e24;
constexpr double kLongestSeconds = 1e6;  ///< Ticks end at 9.2e6 s

/// Three significant digits in the largest unit for which the number is at least 1.
struct TextUnit {
  std::string_view name;
  double size;
};
std::string text_of(double value, std::span<const TextUnit> units) {
  const double magnitude = std::abs(value);
  std::size_t i = 0;
  while (i + 1 < units.size() && magnitude >= 999.5 * units[i].size) ++i;
  if (value == 0) return fmt::format("0 {}", units[i].name);
  const double scaled = value / units[i].size;
  if (std::abs(scaled) >= 999.5) return fmt::format("{:.0f} {}", scaled, units[i].name);
  return fmt::format("{:.3g} {}", scaled, units[i].name);
}

double parse_byte_count(std::string_view text, std::string_view where) {
  constexpr double kLargestExactDouble = 9007199254740992.0;  // 2^53: 9 PB
  const double value = parse_value(text, where, kBytes);
  if (value >= kLargestExactDouble) refuse_range(text, where, kBytes);
  return value;
}

}  // namespace

Bytes parse_bytes(std::string_view text, std::string_view where) {
  const double value = parse_byte_count(text, where);
  if (value != std::floor(value))
    throw InputError(Diagnostic{
        std::string(where), fmt::format("'{}' is not a whole number of bytes", shown(text)),
        fmt::format("write \"{:.0f} B\"", std::max(1.0, std::round(value)))});
  return Bytes(static_cast<std::int64_t>(value));
}

Bytes parse_measured_bytes(std::string_view text, std::string_view where) {
  return Bytes(static_cast<std::int64_t>(std::llround(parse_byte_count(text, where))));
}

BytesPerSecond parse_bandwidth(std::string_view text, std::string_view where) {
  const double value = parse_value(text, where, kBandwidth);
  if (value > kLargestRate) refuse_range(text, where, kBandwidth);
  return BytesPerSecond(value);
}

FlopsPerSecond parse_flop_rate(std::string_view text, std::string_view where) {
  const double value = parse_value(text, where, kFlopRate);
  if (value > kLargestRate) refuse_range(text, where, kFlopRate);
  return FlopsPerSecond(value);
}

Seconds parse_seconds(std::string_view text, std::string_view where) {
  const double value = parse_value(text, where, kTime);
  if (value > kLongestSeconds) refuse_range(text, where, kTime);
  return Seconds(value);
}

Watts parse_power(std::string_view text, std::string_view where) {
  constexpr double kHighestPower = 1e6;
  const double value = parse_value(text, where, kPower);
  if (value > kHighestPower) refuse_range(text, where, kPower);
  return Watts(value);
}

DollarsPerHour parse_price(std::string_view text, std::string_view where) {
  constexpr double kHighestPrice = 1e9;
  const double value = parse_value(text, where, kPrice);
  if (value > kHighestPrice) refuse_range(text, where, kPrice);
  return DollarsPerHour(value);
}

std::string to_text(Bytes bytes) {
  constexpr std::array<TextUnit, 5> kUnits{{{"B", 1},
                                            {"KiB", 1024.0},
                                            {"MiB", 1048576.0},
                                            {"GiB", 1073741824.0},
                                            {"TiB", 1099511627776.0}}};
  return text_of(static_cast<double>(bytes.value), kUnits);
}

std::string to_text(BytesPerSecond rate) {
  constexpr std::array<TextUnit, 5> kUnits{
      {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}}};
  return text_of(rate.value, kUnits);
}

std::string to_text(FlopsPerSecond rate) {
  constexpr std::array<TextUnit, 6> kUnits{{{"FLOP/s", 1},
                                            {"MFLOP/s", 1e6},
                                            {"GFLOP/s", 1e9},
                                            {"TFLOP/s", 1e12},
                                            {"PFLOP/s", 1e15},
                                            {"EFLOP/s", 1e18}}};
  return text_of(rate.value, kUnits);
}

std::string to_text(Seconds time) {
  constexpr std::array<TextUnit, 5> kUnits{
      {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  if (time.value == 0) return "0 s";
  return text_of(time.value, kUnits);
}

std::string to_text(Ticks time) { return to_text(to_seconds(time)); }

}  // namespace meshwright
