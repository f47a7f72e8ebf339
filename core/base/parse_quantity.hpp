/// Strict parsing of quantities with units, as in cluster files. GiB is not GB, and Gbit/s is not
/// GB/s; a missing unit is an error that suggests units. All throw InputError at `where`.
#pragma once

#include <string>
#include <string_view>

#include "core/base/units.hpp"

namespace meshwright {

/// "80 GiB", "40 GB", "512 MiB", "64 B". Whole bytes only.
Bytes parse_bytes(std::string_view text, std::string_view where);
/// For measured amounts, which are published with decimals: "39.07 GiB", to the nearest byte.
Bytes parse_measured_bytes(std::string_view text, std::string_view where);
/// "450 GB/s", "400 Gbit/s", "2.039 TB/s". Decimal prefixes; binary ("GiB/s") accepted too.
BytesPerSecond parse_bandwidth(std::string_view text, std::string_view where);
/// "312 TFLOP/s", "1 PFLOP/s".
FlopsPerSecond parse_flop_rate(std::string_view text, std::string_view where);
/// "12.5 us", "3 ms", "1 s", "40 ns".
Seconds parse_seconds(std::string_view text, std::string_view where);
/// "500 W", "1.2 kW".
Watts parse_power(std::string_view text, std::string_view where);
/// "55.04 USD": a price per hour.
DollarsPerHour parse_price(std::string_view text, std::string_view where);

/// Human-readable, three significant digits: "79.3 GiB", "450 GB/s", "312 TFLOP/s", "12.5 us".
std::string to_text(Bytes bytes);
std::string to_text(BytesPerSecond rate);
std::string to_text(FlopsPerSecond rate);
std::string to_text(Seconds time);
std::string to_text(Ticks time);

}  // namespace meshwright
