/// Damaged files: readers either succeed or throw InputError.
#pragma once

#include <random>
#include <string>

namespace meshwright {

/// One to eight changes, preferably of digits, which become sizes.
inline std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  const std::size_t changes = 1 + below(8);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = below(text.size());
    const std::size_t digit = text.find_first_of("0123456789", at);
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.resize(below(10) == 0 ? at : text.size());
        break;
      case 3:
        text.insert(at, text.substr(at, 1 + below(20)));
        break;
      case 4:
        text.erase(at, 1 + below(3));
        break;
      default:
        if (digit != std::string::npos)
          text.replace(digit, 1, below(2) == 0 ? "0" : std::string(1 + below(12), '9'));
    }
  }
  return text;
}

}  // namespace meshwright
