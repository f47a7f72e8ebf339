/// Time formatting and parsing, and the marks of a ruler.
#pragma once

#include <string>
#include <vector>

#include "gui/timeline/layout.hpp"

namespace meshwright::gui {

/// "412 ns", "3.5 µs", "12.25 ms", "1.204 s": `digits` significant digits, no trailing zeros.
std::string format_time(Nanoseconds time, int digits = 4);
/// Parses "1.5ms" or "12 us"; returns false if the text is not a number with a unit of time.
bool parse_time(std::string_view text, Nanoseconds& time);

struct RulerMark {
  Nanoseconds time;
  std::string label;  ///< empty for minor marks
  friend bool operator==(const RulerMark&, const RulerMark&) = default;
};
/// Marks at 1, 2 or 5 times a power of ten; labels are at least `apart` pixels apart.
std::vector<RulerMark> ruler_marks(const TimeWindow& window, double apart = 90);

}  // namespace meshwright::gui
