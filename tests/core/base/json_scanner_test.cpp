#include "core/base/json_scanner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

/// The whole document, written again without whitespace.
std::string walked(JsonScanner& scanner) {
  std::string out;
  switch (scanner.next()) {
    case JsonScanner::Kind::kObject:
      out = "{";
      for (bool more = scanner.enter_object(); more; more = scanner.next_member()) {
        if (out.size() > 1) out += ",";
        out += std::string(scanner.key()) + ":";
        out += walked(scanner);
      }
      return out + "}";
    case JsonScanner::Kind::kArray:
      out = "[";
      for (bool more = scanner.enter_array(); more; more = scanner.next_element()) {
        if (out.size() > 1) out += ",";
        out += walked(scanner);
      }
      return out + "]";
    case JsonScanner::Kind::kText:
      return "'" + std::string(scanner.text()) + "'";
    case JsonScanner::Kind::kNumber:
      return std::string(scanner.number());
    case JsonScanner::Kind::kWord:
      scanner.skip();
      return "word";
    case JsonScanner::Kind::kEnd:
      return "end";
  }
  return out;
}

TEST(JsonScanner, WalksOverEverything) {
  const std::string text =
      R"( {"a" : [1, -2.5e3, "x\n\u00e9\ud83d\ude00\"", {}], "b\/":{"c":[]} , "d":true} )";
  JsonScanner scanner(text, "f");
  EXPECT_EQ(walked(scanner), "{a:[1,-2.5e3,'x\n\xc3\xa9\xf0\x9f\x98\x80\"',{}],b/:{c:[]},d:word}");
  scanner.expect_end();
}

TEST(JsonScanner, SkipsWhatNobodyWants) {
  const std::string text = R"({"skip":{"a":["}]\"",{"b":1}]},"keep":7})";
  JsonScanner scanner(text, "f");
  ASSERT_TRUE(scanner.enter_object());
  scanner.skip();
  ASSERT_TRUE(scanner.next_member());
  EXPECT_EQ(scanner.key(), "keep");
  EXPECT_EQ(scanner.number(), "7");
  EXPECT_FALSE(scanner.next_member());
}

TEST(JsonScanner, SaysAtWhichByteTheInputIsUnsound) {
  const std::string text = R"({"a":[1,2)";
  JsonScanner scanner(text, "t.json");
  const Diagnostic problem = diagnostics_of([&] { walked(scanner); }).at(0);
  EXPECT_EQ(problem.where, "t.json: byte 9");
  EXPECT_THAT(problem.what, HasSubstr("invalid JSON: unexpected end"));
}

// Every proper prefix of a valid text is rejected, without reading beyond its end.
TEST(JsonScanner, RefusesEveryPrefix) {
  const std::string text = R"({"a":[1,"x\u00e9",{"b":null}],"c":false})";
  for (std::size_t n = 0; n < text.size(); ++n) {
    const std::string part = text.substr(0, n);  // a copy, so that sanitizers see its end
    JsonScanner scanner(part, "f");
    if (n == 0)
      EXPECT_EQ(walked(scanner), "end");
    else
      EXPECT_THROW(walked(scanner), InputError) << part;
  }
}

TEST(JsonScanner, RefusesBottomlessNesting) {
  const std::string text(1'000'000, '[');
  JsonScanner scanner(text, "f");
  EXPECT_THROW(walked(scanner), InputError);
}

TEST(MicrosecondsToNanoseconds, AreExactToThreeDecimals) {
  const auto read = [](std::string_view text) {
    std::int64_t value = -77;
    EXPECT_TRUE(microseconds_to_nanoseconds(text, value)) << text;
    return value;
  };
  EXPECT_EQ(read("0"), 0);
  EXPECT_EQ(read("12.345"), 12'345);
  EXPECT_EQ(read("-12.5"), -12'500);
  EXPECT_EQ(read("-0.25"), -250);
  EXPECT_EQ(read("1700000000123456.789"), 1'700'000'000'123'456'789);  // no double holds that
  EXPECT_EQ(read("1.23456"), 1'234);
  EXPECT_EQ(read("1.5e3"), 1'500'000);
  std::int64_t value = 0;
  for (const char* text : {"x", "1.2.3", "1e40", "", "9e18", "5000000000000000", "--1"})
    EXPECT_FALSE(microseconds_to_nanoseconds(text, value)) << text;
}

}  // namespace
}  // namespace meshwright
