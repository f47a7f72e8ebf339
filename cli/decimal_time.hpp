/// Times as people write them: decimal numbers in a unit, turned into Ticks without rounding.
#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"

namespace meshwright {

/// Ticks in one "s", "ms", "us" or "ns"; UsageError for --unit otherwise.
Ticks ticks_of_unit(const std::string& unit);

/// "18.522" in ms is 18 522 000 000 Ticks exactly: digits are shifted, never multiplied as binary
/// fractions. UsageError naming the flag for anything that is no plain decimal number, is negative,
/// finer than a picosecond, or longer than a day.
Ticks parse_decimal_time(const std::string& flag, const std::string& text, Ticks unit);

/// Numbers separated by commas or blanks.
std::vector<Ticks> parse_decimal_times(const std::string& flag,
                                       const std::vector<std::string>& words, Ticks unit);

}  // namespace meshwright
