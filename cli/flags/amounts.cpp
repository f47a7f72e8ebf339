#include "cli/flags/amounts.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "cli/flags/usage_error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

struct Suffix {
  std::string_view name;
  double factor;
};

/// The number times the factor of its suffix; nullopt if either is unknown.
std::optional<double> scaled_number(std::string_view text, std::span<const Suffix> suffixes) {
  std::string_view suffix;
  const auto value = leading_number(text, suffix);
  for (const Suffix& known : suffixes)
    if (value && suffix == known.name) return *value * known.factor;
  return std::nullopt;
}

}  // namespace

std::optional<double> leading_number(std::string_view text, std::string_view& rest) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  rest = std::string_view(stop, static_cast<std::size_t>(end - stop));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  return value;
}

Seconds parse_long_time(const std::string& flag, const std::string& text) {
  constexpr double kDay = 86'400, kYear = 365.25 * kDay, kLongest = 1e15;
  constexpr std::array<Suffix, 7> kUnits{{{"s", 1},
                                          {"min", 60},
                                          {"h", 3600},
                                          {"d", kDay},
                                          {"days", kDay},
                                          {"y", kYear},
                                          {"years", kYear}}};
  const auto seconds = scaled_number(text, kUnits);
  if (!seconds || *seconds < 0 || *seconds > kLongest)
    refuse_flag(flag, fmt::format("invalid value '{}': expected a time", text),
                "write a number with the unit s, min, h, d or y, such as 50000h");
  return Seconds(*seconds);
}

Seconds parse_positive_time(const std::string& flag, const std::string& text) {
  const Seconds time = parse_long_time(flag, text);
  if (time.value <= 0) refuse_flag(flag, fmt::format("must be positive, got {}", text), "");
  return time;
}

std::int64_t parse_token_count(const std::string& flag, const std::string& text) {
  constexpr double kMost = 1e18;
  constexpr std::array<Suffix, 7> kSuffixes{
      {{"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}}};
  constexpr const char* kForm = "write a number of tokens such as 300B, 15T or 1e12";
  const auto tokens = scaled_number(text, kSuffixes);
  if (!tokens) refuse_flag(flag, fmt::format("invalid value '{}'", text), kForm);
  if (*tokens < 1 || *tokens > kMost)
    refuse_flag(flag, fmt::format("{} is out of range: expected 1 to 1e18 tokens", text), kForm);
  return std::llround(*tokens);
}

double parse_positive_share(const std::string& flag, const std::string& text) {
  constexpr double kMostShare = 100;
  const bool is_percent = text.ends_with('%');
  const auto value = number_from_text<double>(
      std::string_view(text).substr(0, text.size() - (is_percent ? 1 : 0)));
  const double share = value.value_or(0) / (is_percent ? 100 : 1);
  if (!(share > 0) || share > kMostShare)
    refuse_flag(flag, fmt::format("invalid value '{}': expected a positive ratio", text),
                "write 10% or 0.1, for example");
  return share;
}

DollarsPerHour parse_device_price(const std::string& flag, const std::string& text) {
  constexpr double kMost = 1e6;
  constexpr const char* kForm = "write US dollars per GPU-hour, such as 2.5";
  std::string_view rest;
  const auto price = leading_number(text, rest);
  if (!price || !rest.empty()) refuse_flag(flag, fmt::format("invalid value '{}'", text), kForm);
  if (*price <= 0 || *price > kMost)
    refuse_flag(flag, fmt::format("must be above 0 and at most {}, got {}", kMost, text), kForm);
  return DollarsPerHour(*price);
}

}  // namespace meshwright
