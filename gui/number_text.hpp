/// Numbers as the user reads them: by the locale, with units, in the unit of time that was chosen.
#pragma once

#include <QString>

#include "core/units.hpp"
#include "gui/preferences.hpp"

namespace meshwright::gui {

/// "412 ms", "3.25 µs": three digits that matter.
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
/// "2.5 ms", "300us", "1.2" (in `fallback`): what a user types; nothing if it is no time.
std::optional<Ticks> time_from_text(const QString& text,
                                    TimeUnit fallback = TimeUnit::kMilliseconds);

}  // namespace meshwright::gui
