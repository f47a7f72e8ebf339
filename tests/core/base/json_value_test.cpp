#include "core/base/json_value.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {
using testing::HasSubstr;

std::string refusal_of(std::string_view text) {
  return complaints_of([&] { parse_json(text, "x.json"); });
}

TEST(ParseJson, KeepsTypesAndOrder) {
  const JsonValue root = parse_json(R"({"b": [1, 2.5, true, null], "a": "x"})", "x.json");
  const auto& object = *root.as<JsonObject>();
  ASSERT_EQ(object.size(), 2u);
  EXPECT_EQ(object[0].key, "b");
  const auto& array = *object[0].value.as<JsonArray>();
  EXPECT_EQ(*array[0].as<std::int64_t>(), 1);
  EXPECT_EQ(*array[1].as<double>(), 2.5);
  EXPECT_EQ(*array[2].as<bool>(), true);
  EXPECT_TRUE(array[3].is_null());
  EXPECT_EQ(*object[1].value.as<std::string>(), "x");
}

TEST(ParseJson, PlacesSyntaxErrors) {
  EXPECT_THAT(refusal_of("{\n  \"a\": 1,\n  b\n}"),
              HasSubstr("x.json:3:3: invalid JSON: syntax error"));
  EXPECT_THAT(refusal_of(""), HasSubstr("x.json:1:1: "));
  EXPECT_THAT(refusal_of("[1] 2"), HasSubstr("x.json:1:5: "));
  EXPECT_THAT(refusal_of("\"\xff\""), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal_of("[1e999]"), HasSubstr("number overflow"));
  EXPECT_THAT(refusal_of("[NaN]"), HasSubstr("syntax error"));
}

TEST(ParseJson, RefusesDuplicateKeysWithTheirPlace) {
  EXPECT_THAT(refusal_of("{\"a\": 1,\n \"a\": 2}"), HasSubstr("x.json:2:4: duplicate key 'a'"));
  EXPECT_EQ(refusal_of(R"({"a": {"a": 1}, "b": {"a": 1}})"), "") << "apart, keys may repeat";
}

TEST(ParseJson, CapsDepthAndCount) {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  EXPECT_EQ(refusal_of(nested(kDeepestJson)), "");
  EXPECT_THAT(refusal_of(nested(kDeepestJson + 1)), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(refusal_of(nested(1'000'000)), HasSubstr("nested deeper than 64 levels"));
  std::string many = "[1";
  for (std::size_t i = 0; i < kMostJsonValues; ++i) many += ",1";
  EXPECT_THAT(refusal_of(many + "]"), HasSubstr("more than 2000000 values"));
}

TEST(JsonObjectReader, CollectsAllProblemsWithPointers) {
  const JsonValue root =
      parse_json(R"({"tp": "2", "pp": 2.5, "dpp": 1, "list": [1, -1], "a/b": 0})", "x.json");
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(root, "x.json", problems);
  EXPECT_EQ(reader.integer("tp", 1, 8), 1);
  EXPECT_EQ(reader.integer("pp", 1, 8), 1);
  EXPECT_EQ(reader.integer("dp", 1, 8), 1);
  EXPECT_EQ(reader.integers("list", 0, 8, 8), (std::vector<std::int64_t>{1, 0}));
  reader.finish();
  const std::vector<Diagnostic> expected{
      {"x.json#/tp", "expected a whole number, got the string \"2\"", ""},
      {"x.json#/pp", "expected a whole number, got the number 2.5", ""},
      {"x.json", "missing key 'dp'", ""},
      {"x.json#/list/1", "-1 is out of range: expected 0 to 8", ""},
      {"x.json#/dpp", "unknown key 'dpp'", "did you mean 'pp', 'dp'?"},
      {"x.json#/a~1b", "unknown key 'a/b'", "expected one of: tp, pp, dp, list"}};
  EXPECT_EQ(InputError(problems).what(), std::string(InputError(expected).what()));
}

TEST(JsonObjectReader, SaysWhenThereIsNoObject) {
  const JsonValue root = parse_json("[]", "x.json");
  std::vector<Diagnostic> problems;
  JsonObjectReader reader(root, "x.json", problems);
  reader.integer("tp", 1, 8);
  reader.finish();
  EXPECT_EQ(problems,
            (std::vector<Diagnostic>{{"x.json", "expected an object, got an array", ""}}));
}

}  // namespace
}  // namespace meshwright
