/// Lists on the command line and in plan files.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace meshwright {

/// With a comma: "a,b" → a, b; "a," → a and an empty word; "" → one empty word. Views of `text`.
inline std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}
inline std::vector<std::string_view> split_at_commas(std::string_view text) {
  return split_at(text, ',');
}

}  // namespace meshwright
