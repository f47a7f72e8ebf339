// `plan` on a cluster with nodes of two types.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/formats/file.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string node(const char* name, const char* device) {
  return fmt::format(R"([nodes.{0}]
name = "{0}"
device = "{1}"
device_count = 8
ports = 8
port_bandwidth = "200 Gbit/s"
cpu = "amd"
source = "test"
[nodes.{0}.local]
kind = "nvswitch"
bandwidth = "300 GB/s"
latency = "5 us"
source = "test"
[[groups]]
node = "{0}"
count = 1
source = "test"
)",
                     name, device);
}

class MixedPlan : public ProgramTest {
 protected:
  void SetUp() override {
    write_file(path("mixed.toml"),
               "schema = 1\nname = \"mixed\"\n[fabric]\nlatency = \"10 us\"\noversubscription = "
               "1.0\ncollectives = \"infiniband\"\nsource = \"test\"\n" +
                   node("large", "a100-sxm4-80gb") + node("small", "a100-sxm4-40gb"));
  }
  ProgramRun plan(std::vector<std::string> more, const std::string& gpus = "16") const {
    std::vector<std::string> arguments{"plan",      "--model",        "llama-3.1-8b",
                                       "--cluster", "mixed.toml",     "--gpus",
                                       gpus,        "--global-batch", "32",
                                       "--seq",     "4096",           "--micro-batch",
                                       "1",         "--tp",           "8",
                                       "--trainer", "torchtitan"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(MixedPlan, RefusesPerLayerOptions) {
  const ProgramRun planned = plan({"--per-layer"});
  EXPECT_EQ(planned.exit_code, 2);
  EXPECT_THAT(planned.standard_error, HasSubstr("several node types"));
}

TEST_F(MixedPlan, ComparesSetsOfNodes) {
  const ProgramRun planned = plan({"--top", "2"});
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  EXPECT_THAT(planned.standard_output, HasSubstr("Best plan on each set of nodes"));
  EXPECT_THAT(planned.standard_output, HasSubstr("1 large + 1 small"));
}

// Eight GPUs are one node of either type, sixteen are both. Sixteen GPUs at 2 USD per hour.
TEST_F(MixedPlan, ComparesSizes) {
  const ProgramRun planned = plan({"--tokens", "1B", "--price", "2", "--json"}, "8..16");
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json points = Json::parse(planned.standard_output)["points"];
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0]["plan"]["nodes"].size(), 1u);
  EXPECT_EQ(points[1]["plan"]["nodes"].size(), 2u);
  const Json& training = points[1]["plan"]["training"];
  EXPECT_DOUBLE_EQ(training["gpu_hours"], 16 * 24 * training["days"].get<double>());
  EXPECT_DOUBLE_EQ(training["cost_usd"], 2 * training["gpu_hours"].get<double>());
}

TEST_F(MixedPlan, FindsTheFewestGpus) {
  const ProgramRun planned = plan({"--top", "1", "--json"}, "auto");
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json json = Json::parse(planned.standard_output);
  EXPECT_EQ(json["fewest_gpus"]["gpus"], 8);  // --tp 8
  EXPECT_EQ(json["plans"][0]["nodes"].size(), 1u);
}

TEST_F(MixedPlan, RefusesMoreGpusThanThereAre) {
  const ProgramRun planned = plan({}, "17");
  EXPECT_EQ(planned.exit_code, 3);
  EXPECT_THAT(planned.standard_error,
              HasSubstr("17 devices requested, but cluster 'mixed' has 16"));
}

// Every perturbed search selects nodes, and listed plans stay on theirs: on their nodes the step
// times of unchanged link bandwidth are between those of less and more.
TEST_F(MixedPlan, SearchesPerturbedHardwareOnSelectedNodes) {
  const ProgramRun planned = plan({"--top", "2", "--sensitivity", "--json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json json = Json::parse(planned.standard_output);
  const Json& links = json["sensitivity"]["hardware"];
  ASSERT_EQ(json["plans"].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t step = json["plans"][i]["step_time_ns"];
    EXPECT_GE(links[0]["plans"][i]["step_time_ns"].get<std::int64_t>(), step);
    EXPECT_LE(links[1]["plans"][i]["step_time_ns"].get<std::int64_t>(), step);
  }
}

// The embedded cluster has the nodes of the plan in its order, so the file needs no other one.
TEST_F(MixedPlan, WritesPlansThatSimulateAsPredicted) {
  const ProgramRun planned = plan({"--top", "1", "--json", "-o", "best.plan.json"});
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  const Json json = Json::parse(planned.standard_output);
  const Json& best = json["plans"][0];
  ASSERT_EQ(json["nodes"].size(), 3u);
  EXPECT_EQ(json["nodes"][0]["plan"]["step_time_ns"], best["step_time_ns"]);
  EXPECT_EQ(json["nodes"][0]["nodes"], best["nodes"]);
  int nodes = 0;
  for (const Json& group : best["nodes"]) nodes += group["count"].get<int>();
  EXPECT_EQ(nodes, 2);
  const ProgramRun simulated = run({"simulate", "best.plan.json", "--json"});
  ASSERT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  const Json again = Json::parse(simulated.standard_output);
  EXPECT_EQ(again["step_time_ns"], best["step_time_ns"]);
  EXPECT_EQ(again["peak_memory_bytes"], best["peak_memory_bytes"]);
}

}  // namespace
}  // namespace meshwright
