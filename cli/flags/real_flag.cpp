#include "cli/flags/real_flag.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/flags/amounts.hpp"
#include "cli/flags/usage_error.hpp"

namespace meshwright {
namespace {

bool contains(const RealRange& range, double value) {
  const bool is_above = range.excludes_smallest ? value > range.smallest : value >= range.smallest;
  const bool is_below = range.excludes_largest ? value < range.largest : value <= range.largest;
  return is_above && is_below;
}

/// "a number from 0 to below 1"
std::string range_text(const RealRange& range) {
  return fmt::format("a number {} {} {} {}", range.excludes_smallest ? "above" : "from",
                     range.smallest, range.excludes_largest ? "to below" : "to", range.largest);
}

}  // namespace

double parse_real(const std::string& flag, const std::string& text, RealRange range) {
  std::string_view rest;
  const std::optional<double> value = leading_number(text, rest);
  if (!value || !rest.empty())
    throw UsageError(
        {.where = flag,
         .what = fmt::format("invalid value '{}': expected {}", text, range_text(range)),
         .hint = ""});
  if (!contains(range, *value))
    throw UsageError(
        {.where = flag,
         .what = fmt::format("{} is out of range: expected {}", text, range_text(range)),
         .hint = ""});
  return *value;
}

void add_real(CLI::App& app, const std::string& flag, std::optional<double>& value, RealRange range,
              const std::string& description) {
  const auto set_value = [&value, flag, range](const std::string& text) {
    value = parse_real(flag, text, range);
  };
  app.add_option_function<std::string>(flag, set_value, description)->type_name("X");
}

}  // namespace meshwright
