#include "models/text/toml_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {

/// "a.a.a" of so many parts.
std::string key_of(int parts) {
  std::string key = "a";
  for (int i = 1; i < parts; ++i) key += ".a";
  return key;
}

std::string complaint_about(const std::string& text) {
  return complaints_of([&] { parse_toml({"x", "x.toml", text}); });
}

// A text of 64 KiB would overflow the stack of the parser.
TEST(TomlReader, RefusesKeysThatNestDeeply) {
  for (const std::string& text :
       {key_of(30'000) + " = 1", "[" + key_of(30'000) + "]", "x = {" + key_of(65) + " = 1}",
        "x = {" + key_of(40) + " = {" + key_of(40) + " = 1}}"})
    EXPECT_THAT(complaint_about(text), testing::HasSubstr("x.toml:1: key with more than 64 parts"));
  EXPECT_EQ(complaint_about(key_of(64) + " = 1\n[b." + key_of(63) + "]"), "");
}

TEST(TomlReader, CountsDotsOfKeysOnly) {
  const std::string dots(200, '.');
  for (const std::string& text :
       {"x = \"" + dots + "\"", "x = '" + dots + "'", "x = \"\"\"\n" + dots + "\n\"\"\"",
        "x = '''\n" + dots + "'''", "x = 1 # " + dots, "x = \"a\\\"" + dots + "\""})
    EXPECT_EQ(complaint_about(text), "") << text;
  std::string numbers = "x = [";
  for (int i = 0; i < 100; ++i) numbers += "1.5, ";
  EXPECT_EQ(complaint_about(numbers + "]"), "");
}

}  // namespace
}  // namespace meshwright
