#include "models/text/toml_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/parse_quantity.hpp"

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

/// The shortest text in the customary unit if it reads back exactly, else in base units.
struct UnitText {
  double factor;
  std::string_view name, base;
};
constexpr UnitText kRate{1e9, "GB/s", "B/s"}, kFlopRate{1e12, "TFLOP/s", "FLOP/s"},
    kTime{1e6, "us", "s"};

template <class Parse>
std::string quantity(double value, double in_unit, const UnitText& unit, Parse parse) {
  constexpr int kMostDecimals = 15;
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals) {
    const std::string text = fmt::format("{:.{}f} {}", in_unit, decimals, unit.name);
    try {
      if (parse(text, "").value == value) return toml_quoted(text);
    } catch (const InputError&) {  // zero, or more digits than a quantity allows
    }
  }
  return toml_quoted(fmt::format("{} {}", value, unit.base));
}

}  // namespace

std::string text_of(BytesPerSecond rate) {
  return quantity(rate.value, rate.value / kRate.factor, kRate, parse_bandwidth);
}
std::string text_of(FlopsPerSecond rate) {
  return quantity(rate.value, rate.value / kFlopRate.factor, kFlopRate, parse_flop_rate);
}
std::string text_of(Seconds time) {
  return quantity(time.value, time.value * kTime.factor, kTime, parse_seconds);
}
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
