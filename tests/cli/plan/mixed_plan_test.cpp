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
  ProgramRun plan(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"plan",      "--model",        "llama-3.1-8b",
                                       "--cluster", "mixed.toml",     "--gpus",
                                       "16",        "--global-batch", "32",
                                       "--seq",     "4096",           "--micro-batch",
                                       "1",         "--tp",           "8",
                                       "--trainer", "torchtitan"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(MixedPlan, ComparesSetsOfNodes) {
  const ProgramRun planned = plan({"--top", "2"});
  ASSERT_EQ(planned.exit_code, 0) << planned.standard_error;
  EXPECT_THAT(planned.standard_output, HasSubstr("Best plan on each set of nodes"));
  EXPECT_THAT(planned.standard_output, HasSubstr("1 large + 1 small"));
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
