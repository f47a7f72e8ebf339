#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graphs/graph_files.hpp"
#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGraph = R"({"maxSizePerFPGA": 1e3, "maxFPGAs": 2, "maxCPUs": 1,
"nodes": [
  {"id": 7, "name": "a", "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.25, "size": 4.0,
   "isBackwardNode": 0, "colorClass": 3},
  {"id": 9, "supportedOnFpga": false, "cpuLatency": 2, "fpgaLatency": 0, "isBackwardNode": true}],
"edges": [{"sourceId": 7, "destId": 9, "cost": 0.5, "size": 12}]})";

PartitionProblem read(std::string_view text) {
  return read_dnn_partitioning({.name = "g", .where = "g.json", .text = std::string(text)});
}

TEST(DnnPartitioningFile, HasTimesInMillisecondsAndSizesInBytes) {
  const PartitionProblem problem = read(kGraph);
  EXPECT_EQ(problem.accelerators, 2);
  EXPECT_EQ(problem.hosts, 1);
  EXPECT_EQ(problem.accelerator_memory, Bytes(1000));
  const PartitionNode a{.name = "a",
                        .accelerator_time = Ticks(1'250'000'000),
                        .host_time = Ticks(10'000'000'000),
                        .transfer_time = Ticks(500'000'000),
                        .memory = Bytes(4),
                        .colocation = 3};
  EXPECT_EQ(problem.nodes[0], a);
  EXPECT_EQ(problem.nodes[1].name, "9");
  EXPECT_FALSE(problem.nodes[1].runs_on_accelerator);
  EXPECT_TRUE(problem.nodes[1].is_backward);
  EXPECT_EQ(problem.edges, (std::vector<PartitionEdge>{{0, 1}}));
}

TEST(DnnPartitioningFile, IsRefusedWithThePlaceOfTheProblem) {
  const auto complaint = [](std::string_view from, std::string_view to) {
    return complaints_of([&] { read(replaced(std::string(kGraph), from, to)); });
  };
  EXPECT_THAT(complaint("\"id\": 9", "\"id\": 7"),
              HasSubstr("g.json#/nodes/1: id 7 is used twice"));
  EXPECT_THAT(complaint("\"destId\": 9", "\"destId\": 8"), HasSubstr("g.json#/edges/0: edge from"));
  EXPECT_THAT(complaint("\"destId\": 9", "\"destId\": 7"), HasSubstr("depends on a cycle"));
  EXPECT_THAT(complaint("\"fpgaLatency\": 1.25", "\"fpgaLatency\": -1"), HasSubstr("at least 0"));
  EXPECT_THAT(complaint("\"cpuLatency\": 10", "\"cpuLatency\": 1e30"), HasSubstr("1,000 s"));
  EXPECT_THAT(complaint("\"maxFPGAs\": 2", "\"maxFPGAs\": -2"), HasSubstr("expected 0 to"));
  EXPECT_THAT(complaint("\"id\": 9", "\"it\": 9"), HasSubstr("g.json#/nodes/1: missing key 'id'"));
}

TEST(DnnPartitioningFile, HasOneCostForAllEdgesOfASource) {
  const std::string text =
      replaced(std::string(kGraph), "\"size\": 12}",
               "\"size\": 12}, {\"sourceId\": 7, \"destId\": 9, \"cost\": 0.75}");
  EXPECT_THAT(complaints_of([&] { read(text); }),
              HasSubstr("g.json#/edges/1: cost 0.75 ms differs"));
}

TEST(DnnPartitioningFile, HasNoEdgesFromBackwardToForwardNodes) {
  std::string text =
      replaced(std::string(kGraph), "\"isBackwardNode\": 0", "\"isBackwardNode\": 1");
  text = replaced(text, "\"isBackwardNode\": true", "\"isBackwardNode\": false");
  EXPECT_THAT(complaints_of([&] { read(text); }), HasSubstr("from the backward node 'a'"));
}

}  // namespace
}  // namespace meshwright
