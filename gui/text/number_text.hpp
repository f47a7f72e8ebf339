/// Formats numbers for display: in the current locale, with units, in the preferred unit of time.
#pragma once

#include <QString>
#include <cstdint>
#include <optional>

#include "core/base/units.hpp"

namespace meshwright::gui {

/// The unit of displayed times; kAuto selects one that gives one to three integer digits.
enum class TimeUnit : std::uint8_t { kAuto, kNanoseconds, kMicroseconds, kMilliseconds, kSeconds };
inline constexpr int kTimeUnitCount = 5;

/// "412 ms", "3.25 µs": three significant digits.
QString time_text(Ticks time, TimeUnit unit = TimeUnit::kAuto);
/// Memory: "71.3 GiB".
QString bytes_text(Bytes bytes);
/// "6.1 %"
QString percent_text(double share, int decimals = 1);
QString count_text(qint64 count);
/// "312 TFLOP/s"
QString rate_text(FlopsPerSecond rate);
/// "300 GB/s"
QString rate_text(BytesPerSecond rate);
/// Parses user input: "2.5 ms", "300us", "1.2" (in the `fallback` unit); nullopt if not a time.
std::optional<Ticks> time_from_text(const QString& text,
                                    TimeUnit fallback = TimeUnit::kMilliseconds);

}  // namespace meshwright::gui
