/// Numbers with a unit or a suffix: "50000h", "15T".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/units.hpp"

namespace meshwright {

/// The number at the start of `text`; `rest` is the text after it, without leading spaces.
std::optional<double> leading_number(std::string_view text, std::string_view& rest);

/// "50000h", "5 years", "90 s". UsageError with the flag for anything else, and for negative times.
Seconds parse_long_time(const std::string& flag, const std::string& text);
/// The same, above 0.
Seconds parse_positive_time(const std::string& flag, const std::string& text);

/// "15T", "300B", "1.5M", "20k", "1e12": at least 1, at most 1e18, rounded to a whole number.
std::int64_t parse_token_count(const std::string& flag, const std::string& text);

/// "10%" or "0.1": a positive share, at most 100.
double parse_positive_share(const std::string& flag, const std::string& text);

/// "2.5": above 0.
DollarsPerHour parse_device_price(const std::string& flag, const std::string& text);

}  // namespace meshwright
