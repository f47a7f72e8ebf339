/// A number that is the whole of a text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace meshwright {

/// Empty if anything but the number is in the text (no blanks, no '+'), or if it is out of range.
/// Floating-point numbers may be infinite or NaN.
template <class Number>
std::optional<Number> number_from_text(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace meshwright
