/// Numbers in texts that are put together piece by piece.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

namespace meshwright {

/// Appends the decimal digits.
inline void append_number(std::string& text, std::int64_t number) {
  char digits[24];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

}  // namespace meshwright
