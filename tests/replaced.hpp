/// Texts with a part replaced.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace meshwright {

/// `text` with the first `from`, which it must contain, replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace meshwright
