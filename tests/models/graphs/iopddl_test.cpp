#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "models/graphs/graph_files.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

constexpr const char* kProblem = R"({"problem": {"name": "two", "nodes":
    {"intervals": [[0, 5], [3, 9]], "costs": [[15], [55, 65]], "usages": [[10], [25, 20]]},
  "edges": {"nodes": [[0, 1]], "costs": [[30, 40]]}, "usage_limit": 50}})";

NamedText file(const std::string& text) { return {.name = "x", .where = "x.json", .text = text}; }

std::string complaint_about(const std::string& text) {
  try {
    read_iopddl(file(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Iopddl, IsReadAsItStands) {
  const ShardingProblem problem = read_iopddl(file(kProblem));
  ShardingProblem expected{.name = "two", .nodes = {}, .edges = {}, .usage_limit = 50};
  expected.nodes.push_back({.begin = 0, .end = 5, .costs = {15}, .usages = {10}});
  expected.nodes.push_back({.begin = 3, .end = 9, .costs = {55, 65}, .usages = {25, 20}});
  expected.edges.push_back({.first = 0, .second = 1, .costs = {30, 40}});
  EXPECT_EQ(problem, expected);
  EXPECT_EQ(std::get<ShardingProblem>(read_operator_graph(file(kProblem))), expected);
}

TEST(Iopddl, ErrorsNameThePlace) {
  const auto complaint = [](const std::string& from, const std::string& to) {
    return complaint_about(replaced(kProblem, from, to));
  };
  EXPECT_THAT(complaint("[[0, 1]]", "[[0, 2]]"),
              HasSubstr("x.json#/edges/0: connects nodes 0 and 2"));
  EXPECT_THAT(complaint("[[30, 40]]", "[[30]]"), HasSubstr("expected 2 costs, got 1"));
  EXPECT_THAT(complaint("[25, 20]", "[25]"), HasSubstr("x.json#/nodes/1: 2 costs and 1 usages"));
  EXPECT_THAT(complaint("[15]", "[-15]"), HasSubstr("expected a whole number from 0"));
  EXPECT_THAT(complaint("[3, 9]", "[3]"), HasSubstr("expected 2 numbers, got 1"));
  EXPECT_THAT(complaint("\"intervals\"", "\"times\""), HasSubstr("0 with intervals"));
  EXPECT_THAT(complaint_about(R"({"problem": {}})"), HasSubstr("expected 1 to"));
}

}  // namespace
}  // namespace meshwright
