/// A number that is the whole of a text, or its front.
#pragma once

#include <charconv>
#include <cstdint>
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

/// Removes a number without a sign from the front of `rest`; empty if there is none, or if it is
/// out of range.
inline std::optional<std::int32_t> take_index(std::string_view& rest) {
  std::int32_t value = 0;
  if (rest.empty() || rest.front() < '0' || rest.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return value;
}

}  // namespace meshwright
