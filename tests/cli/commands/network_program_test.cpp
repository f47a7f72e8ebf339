/// Imports, calibrations, noise and failures, as a user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/formats/file.hpp"
#include "tests/cli/program_fixture.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class NetworkProgram : public ProgramTest {
 protected:
  ProgramRun simulate(const std::vector<std::string>& more, const std::string& cluster) const {
    std::vector<std::string> arguments{"simulate", "--model", "gpt2", "--cluster",
                                       cluster,    "--gpus",  "8",    "--global-batch",
                                       "8",        "--seq",   "1024", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  void write(const std::string& name, const std::string& text) const {
    write_file(path(name), text);
  }
};

// Eight devices that all see each other by 12 links: the node of a DGX A100, and the same step.
TEST_F(NetworkProgram, SimulatesAnImportedBoxAsItsPreset) {
  std::string matrix;
  for (int g = 0; g < 8; ++g) matrix += "\tGPU" + std::to_string(g);
  for (int a = 0; a < 8; ++a) {
    matrix += "\nGPU" + std::to_string(a);
    for (int b = 0; b < 8; ++b) matrix += a == b ? "\t X " : "\tNV12";
  }
  write("topo.txt", matrix + "\n");
  const ProgramRun imported = run({"import", "topo.txt", "-o", "mine.toml"});
  EXPECT_EQ(imported.exit_code, 0) << imported.standard_error;
  const Json mine = Json::parse(simulate({}, "./mine.toml").standard_output);
  const Json preset = Json::parse(simulate({}, "dgx-a100").standard_output);
  EXPECT_EQ(mine.at("step_time_ns"), preset.at("step_time_ns"));
}

// An all-reduce measured at ten times and more of what the tuner says makes the step longer.
TEST_F(NetworkProgram, PricesCollectivesByTheCurveOfAnImport) {
  std::string output = "# Collective test starting: all_reduce_perf\n";
  for (int r = 0; r < 8; ++r)
    output += "#  Rank  " + std::to_string(r) + " Group  0 Pid 1 on host device  0 [0x1] A100\n";
  output += "#  size  count  type  redop  root  time  busbw\n";
  output +=
      "  1024  256  float  sum  -1  1000.0  0\n  1073741824  268435456  float  sum  -1  200000.0  "
      "0\n";
  write("reduce.txt", output);
  EXPECT_EQ(run({"import", "reduce.txt", "-o", "mine.calib.json"}).exit_code, 0);
  const Json plain = Json::parse(simulate({"--zero", "0"}, "dgx-a100").standard_output);
  const Json measured = Json::parse(
      simulate({"--zero", "0", "--calibration", "mine.calib.json"}, "dgx-a100").standard_output);
  EXPECT_GT(measured.at("step_time_ns"), plain.at("step_time_ns"));
}

TEST_F(NetworkProgram, PrintsQuantilesOfNoiseAndGoodput) {
  const std::vector<std::string> noise{"--jitter", "0.05",        "--draws", "40",     "--seed",
                                       "7",        "--straggler", "3:1.5",   "--mtbf", "50000h"};
  const ProgramRun first = simulate(noise, "dgx-a100");
  const Json json = Json::parse(first.standard_output);
  const Json& variation = json.at("variation");
  EXPECT_EQ(variation.at("draws"), 40);
  EXPECT_GT(variation.at("with_stragglers_ns"), json.at("step_time_ns"));
  EXPECT_GE(variation.at("p95_ns"), variation.at("p50_ns"));
  EXPECT_GT(json.at("goodput").at("useful"), 0.9);
  EXPECT_EQ(simulate(noise, "dgx-a100").standard_output, first.standard_output);
}

// A slow rank delays the others also where links are shared.
TEST_F(NetworkProgram, CombinesStragglersWithContention) {
  const Json shared = Json::parse(simulate({"--contention"}, "dgx-a100").standard_output);
  const Json slowed =
      Json::parse(simulate({"--contention", "--straggler", "3:1.5"}, "dgx-a100").standard_output);
  EXPECT_EQ(slowed.at("step_time_ns"), shared.at("step_time_ns"));
  EXPECT_GT(slowed.at("variation").at("with_stragglers_ns"), shared.at("step_time_ns"));
}

}  // namespace
}  // namespace meshwright
