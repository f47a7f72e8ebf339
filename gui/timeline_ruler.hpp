/// Times in words and where a ruler has its marks.
#pragma once

#include <string>
#include <vector>

#include "gui/timeline_layout.hpp"

namespace meshwright::gui {

/// "412 ns", "3.5 µs", "12.25 ms", "1.204 s": `digits` significant ones, no trailing zeros.
std::string format_time(Nanoseconds time, int digits = 4);
/// "1.5ms", "12 us", "3", with nanoseconds as the unit of a bare number's caller: nothing if it is
/// not a time.
bool parse_time(std::string_view text, Nanoseconds& time);

struct RulerMark {
  Nanoseconds time;
  std::string label;  ///< empty: a small mark between two
  friend bool operator==(const RulerMark&, const RulerMark&) = default;
};
/// Marks at 1, 2 or 5 times a power of ten, labels at least `apart` pixels apart.
std::vector<RulerMark> ruler_marks(const TimeWindow& window, double apart = 90);

}  // namespace meshwright::gui
