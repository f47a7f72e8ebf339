#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/graphs/graph_files.hpp"
#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kGraph = R"({"maxDevices": 8, "maxMemoryPerDevice": 1e3,
"bandwidth": 50.0, "mbsInBatch": 4,
"nodes": [
  {"id": 7, "name": "a", "TMPCs": {
    "2": [{"id": "only", "timePerSample": 0.75, "parameterSize": 3.0, "memoryUsageA": 5,
           "memoryUsageB": 6, "syncTimeFw": {}, "syncTimeBw": {"9": 40}}],
    "1": [{"id": "stored", "timePerSample": 1.25, "parameterSize": 6, "memoryUsageA": 10.6,
           "memoryUsageB": 0, "syncTimeFw": {}, "syncTimeBw": {"9": 0}},
          {"id": "recomputed", "timePerSample": 1.5, "parameterSize": 6, "memoryUsageA": 1,
           "memoryUsageB": 2, "syncTimeFw": {}, "syncTimeBw": {"9": 0}}]}},
  {"id": 9, "TMPCs": {
    "1": [{"id": "only", "timePerSample": 2, "parameterSize": 0, "memoryUsageA": 0,
           "memoryUsageB": 0, "syncTimeFw": {"7": 8}, "syncTimeBw": {}}]}}],
"edges": [{"sourceId": 7, "destId": 9, "communicationCost": 12}]})";

ReplicationProblem read(std::string_view text) {
  return read_piper({.name = "g", .where = "g.json", .text = std::string(text)});
}

TEST(PiperFile, HasTimesInSecondsAndSizesInBytesByDegree) {
  const ReplicationProblem problem = read(kGraph);
  EXPECT_EQ(problem.devices, 8);
  EXPECT_EQ(problem.microbatches, 4);
  EXPECT_EQ(problem.device_memory, Bytes(1000));
  EXPECT_EQ(problem.bandwidth, BytesPerSecond(50));
  const ReplicationNode a{
      .name = "7:a",
      .degrees = {{.degree = 1,
                   .parameters = Bytes(6),
                   .variants = {{"stored", Seconds(1.25), Bytes(11), Bytes(0)},
                                {"recomputed", Seconds(1.5), Bytes(1), Bytes(2)}}},
                  {.degree = 2,
                   .parameters = Bytes(3),
                   .variants = {{"only", Seconds(0.75), Bytes(5), Bytes(6)}}}}};
  EXPECT_EQ(problem.nodes[0], a);
  EXPECT_EQ(problem.nodes[1].name, "9");
  const ReplicationEdge edge{.source = 0,
                             .target = 1,
                             .transfer = Bytes(12),
                             .source_sync = {Bytes(0), Bytes(40)},
                             .target_sync = {Bytes(8)}};
  EXPECT_EQ(problem.edges, std::vector<ReplicationEdge>{edge});
}

TEST(PiperFile, IsRefusedWithThePlaceOfTheProblem) {
  const auto complaint = [](std::string_view from, std::string_view to) {
    return complaints_of([&] { read(replaced(std::string(kGraph), from, to)); });
  };
  EXPECT_THAT(complaint("\"id\": 9", "\"id\": 7"),
              HasSubstr("g.json#/nodes/1: id 7 is used twice"));
  EXPECT_THAT(complaint("\"destId\": 9", "\"destId\": 8"), HasSubstr("g.json#/edges/0: edge from"));
  EXPECT_THAT(complaint("{\"7\": 8}", "{}"),
              HasSubstr("g.json#/nodes/1/TMPCs/1: 'syncTimeFw' has no entry for node 7"));
  EXPECT_THAT(complaint("{\"7\": 8}", "{\"7\": 8, \"3\": 1}"),
              HasSubstr("g.json#/nodes/1/TMPCs/1: 'syncTimeFw' or 'syncTimeBw' has an entry for"));
  EXPECT_THAT(complaint("{\"7\": 8}", "{\"x\": 8}"), HasSubstr("as key, got 'x'"));
  EXPECT_THAT(complaint("\"2\": [", "\"1\": ["), HasSubstr("TMPCs/1: degree given twice"));
  EXPECT_THAT(complaint("\"2\": [", "\"0\": ["), HasSubstr("as key, got '0'"));
  EXPECT_THAT(complaint("\"mbsInBatch\": 4", "\"mbsInBatch\": 0"),
              HasSubstr("g.json#/mbsInBatch: expected 1 to"));
  EXPECT_THAT(complaint("\"bandwidth\": 50.0", "\"bandwidth\": 0"),
              HasSubstr("g.json#/bandwidth: missing bandwidth"));
  EXPECT_THAT(complaint("\"timePerSample\": 2,", ""), HasSubstr("missing key 'timePerSample'"));
  EXPECT_THAT(complaint("\"timePerSample\": 2", "\"timePerSample\": 1e9"),
              HasSubstr("1e+09 s is more than 1e+06"));
}

/// The parameters of a stage and its transfers must not depend on the choice of variants.
TEST(PiperFile, HasOneSizeOfParametersForAllVariantsOfADegree) {
  const std::string text =
      replaced(std::string(kGraph), "\"timePerSample\": 1.5, \"parameterSize\": 6",
               "\"timePerSample\": 1.5, \"parameterSize\": 7");
  EXPECT_THAT(complaints_of([&] { read(text); }), HasSubstr("g.json#/nodes/0/TMPCs/1: parameters"));
}

TEST(PiperFile, HasNoCycles) {
  std::string text = replaced(std::string(kGraph), "\"syncTimeFw\": {\"7\": 8}, \"syncTimeBw\": {}",
                              "\"syncTimeFw\": {\"9\": 8}, \"syncTimeBw\": {\"9\": 0}");
  text = replaced(text, "\"sourceId\": 7", "\"sourceId\": 9");
  for (int i = 0; i < 2; ++i)
    text = replaced(text, "\"syncTimeBw\": {\"9\": 0}}", "\"syncTimeBw\": {}}");
  text = replaced(text, "{\"9\": 40}", "{}");
  EXPECT_THAT(complaints_of([&] { read(text); }), HasSubstr("depends on a cycle"));
}

TEST(OperatorGraphFile, IsRecognizedByItsContents) {
  const auto read_any = [](std::string_view text) {
    return read_operator_graph({.name = "g", .where = "g", .text = std::string(text)});
  };
  EXPECT_TRUE(std::holds_alternative<ReplicationProblem>(read_any(kGraph)));
  EXPECT_TRUE(std::holds_alternative<PartitionProblem>(
      read_any(R"({"nodes": [{"id": 1, "fpgaLatency": 2}], "edges": []})")));
  EXPECT_THAT(complaints_of([&] { read_any("{\"x\": 1}"); }),
              HasSubstr("g: unrecognized format of an operator graph"));
  EXPECT_THAT(complaints_of([&] { read_any("[]"); }), HasSubstr("unrecognized format"));
}

}  // namespace
}  // namespace meshwright
