#include "models/text/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace meshwright {

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
  return bare ? std::string(key) : toml_quoted(key);
}

namespace {

/// The shortest decimal number without exponent that is nearest to value x 10^shift.
std::string decimal_text(double value, int shift) {
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                  std::chars_format::scientific)
                        .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const std::size_t first = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + first, end, exponent);
  const int before_point = exponent + shift + 1;  // digits
  if (before_point <= 0)
    return "0." + std::string(static_cast<std::size_t>(-before_point), '0') + digits;
  const auto whole = static_cast<std::size_t>(before_point);
  if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0');
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

/// In a customary unit, so that it reads back exactly: readers append the unit's power of ten to
/// the number's text.
std::string quantity(double value, int shift, std::string_view unit) {
  return toml_quoted(fmt::format("{} {}", value == 0 ? "0" : decimal_text(value, shift), unit));
}

}  // namespace

std::string text_of(BytesPerSecond rate) { return quantity(rate.value, -9, "GB/s"); }
std::string text_of(FlopsPerSecond rate) { return quantity(rate.value, -12, "TFLOP/s"); }
std::string text_of(Seconds time) { return quantity(time.value, 6, "us"); }
std::string text_of(Bytes bytes) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30, kKiB = 1 << 10;
  if (bytes.value % kGiB == 0) return fmt::format("\"{} GiB\"", bytes.value / kGiB);
  if (bytes.value % kKiB == 0) return fmt::format("\"{} KiB\"", bytes.value / kKiB);
  return fmt::format("\"{} B\"", bytes.value);
}

std::string toml_comment(const std::vector<std::string>& lines) {
  std::string text;
  for (std::string line : lines) {
    for (char& c : line)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    text += "# " + line + "\n";
  }
  return text;
}

}  // namespace meshwright
