#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graphs/graph_files.hpp"
#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGraph =
    "node1 -- Input0 -- forward_compute_time=9.000, backward_compute_time=0.000, "
    "activation_size=0.0, parameter_size=0.000\n"
    "node2 -- LSTM(2, 1) -- forward_compute_time=3.5, backward_compute_time=5.25, "
    "activation_size=[6.0; 2.0; 1.0], parameter_size=40.000 -- stage_id=3\r\n"
    "node3 -- __getitem__(0) -- forward_compute_time=0.000, backward_compute_time=0.000, "
    "activation_size=6.0, parameter_size=0.000\n"
    "node4 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, "
    "activation_size=2.0, parameter_size=0.000\n"
    "node5 -- Linear -- forward_compute_time=1, backward_compute_time=1, activation_size=7, "
    "parameter_size=8\n"
    "\tnode1 -- node2\n"
    "\tnode2 -- node3\n"
    "\tnode2 -- node4\n"
    "\tnode3 -- node5\n";

PipeDreamProblem read(std::string_view text) {
  return read_pipedream({.name = "g", .where = "g.txt", .text = std::string(text)});
}

/// node1 is an input, and nothing reads node4.
TEST(PipeDreamFile, HasTimesInMillisecondsWithoutInputsAndUnusedItems) {
  const PipeDreamProblem problem = read(kGraph);
  const PipeDreamNode lstm{
      .name = "node2", .time = Seconds(0.00875), .activation = Bytes(9), .parameters = Bytes(40)};
  ASSERT_EQ(problem.nodes.size(), 3U);
  EXPECT_EQ(problem.nodes[0], lstm);
  EXPECT_EQ(problem.nodes[1].name, "node3");
  EXPECT_EQ(problem.nodes[2].name, "node5");
  EXPECT_EQ(problem.edges, (std::vector<PartitionEdge>{{0, 1}, {1, 2}}));
}

TEST(PipeDreamFile, IsRefusedWithTheLineOfTheProblem) {
  const auto complaint = [](std::string_view from, std::string_view to) {
    return complaints_of([&] { read(replaced(std::string(kGraph), from, to)); });
  };
  EXPECT_THAT(complaint("node4 --", "node3 --"), HasSubstr("g.txt:4: node 'node3' has no name of"));
  EXPECT_THAT(complaint("\tnode1 -- node2", "\tnode1 -- node9"),
              HasSubstr("g.txt:6: edge of node 'node9', which does not exist"));
  EXPECT_THAT(complaint("backward_compute_time=5.25", "backward=5.25"),
              HasSubstr("g.txt:2: missing 'backward_compute_time'"));
  EXPECT_THAT(complaint("=3.5", "=-3.5"),
              HasSubstr("g.txt:2: invalid value '-3.5' of 'forward_compute_time'"));
  EXPECT_THAT(complaint("[6.0; 2.0; 1.0]", "[6.0; nan]"), HasSubstr("invalid value 'nan'"));
  EXPECT_THAT(complaint("[6.0; 2.0; 1.0]", "[9e14; 9e14]"), HasSubstr("add up to more than"));
  EXPECT_THAT(complaint("\tnode2 -- node4", "\tnode5 -- node2"), HasSubstr("depends on a cycle"));
  EXPECT_THAT(complaints_of([] {
                read(
                    "node1 -- Input0 -- forward_compute_time=0, backward_compute_time=0, "
                    "activation_size=0, parameter_size=0\n");
              }),
              HasSubstr("g.txt: the graph has no nodes"));
}

TEST(PipeDreamFile, IsRecognizedByItsFirstLine) {
  const OperatorGraph graph =
      read_operator_graph({.name = "g", .where = "g", .text = std::string(kGraph)});
  EXPECT_TRUE(std::holds_alternative<PipeDreamProblem>(graph));
}

}  // namespace
}  // namespace meshwright
