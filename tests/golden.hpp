/// Golden files: tests/golden/NAME holds the text that a test must produce, byte for byte.
/// With MESHWRIGHT_UPDATE_GOLDEN=1 in the environment they are rewritten instead; the difference is
/// then read like code.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "core/formats/file.hpp"

namespace meshwright {

/// "3: 'expected' is now 'actual'" of the first line that differs.
inline std::string first_difference(std::string_view expected, std::string_view actual) {
  for (int line = 1;; ++line) {
    const std::string_view a = expected.substr(0, expected.find('\n'));
    const std::string_view b = actual.substr(0, actual.find('\n'));
    const bool ends = a.size() == expected.size() || b.size() == actual.size();
    if (a != b || ends)
      return std::to_string(line) + ": '" + std::string(a) + "' is now '" + std::string(b) + "'";
    expected.remove_prefix(a.size() + 1);
    actual.remove_prefix(b.size() + 1);
  }
}

inline void expect_golden(std::string_view actual, const std::string& name) {
  const std::string path = std::string(MESHWRIGHT_SOURCE_DIR) + "/tests/golden/" + name;
  const char* update = std::getenv("MESHWRIGHT_UPDATE_GOLDEN");
  if (update && std::string_view(update) == "1") {
    write_file(path, actual);
    return;
  }
  std::string expected;
  try {
    expected = read_file(path);
  } catch (const InputError& error) {
    ADD_FAILURE() << error.what() << "run with MESHWRIGHT_UPDATE_GOLDEN=1 to create it";
    return;
  }
  if (expected != actual)
    ADD_FAILURE() << "tests/golden/" << name << ":" << first_difference(expected, actual)
                  << "\nMESHWRIGHT_UPDATE_GOLDEN=1 rewrites it";
}

}  // namespace meshwright
