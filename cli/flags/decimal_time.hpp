/// Decimal times with a unit, converted to Ticks without rounding.
#pragma once

#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// Ticks in one "s", "ms", "us" or "ns"; UsageError for --unit otherwise.
Ticks ticks_of_unit(const std::string& unit);

/// "18.522" in ms is exactly 18 522 000 000 Ticks: digits are shifted, not converted to binary
/// fractions. UsageError with the flag for anything but a decimal number from 0 to one day without
/// digits below one picosecond.
Ticks parse_decimal_time(const std::string& flag, const std::string& text, Ticks unit);

/// Numbers separated by commas or spaces.
std::vector<Ticks> parse_decimal_times(const std::string& flag,
                                       const std::vector<std::string>& words, Ticks unit);

}  // namespace meshwright
