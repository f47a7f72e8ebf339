/// Text of a file as messages and sources show it.
#pragma once

#include <string>
#include <string_view>

namespace meshwright {

/// ASCII without control characters; truncated after `longest` characters.
inline std::string printable_text(std::string_view text, std::size_t longest = 60) {
  std::string out(text.substr(0, longest));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return text.size() > longest ? out + "..." : out;
}

}  // namespace meshwright
