/// calibrate's cluster, run and compare through the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/cost/calibration.hpp"
#include "core/formats/file.hpp"
#include "tests/cli/program_fixture.hpp"
#include "tests/core/cost/two_core_machine.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class ValidationProgram : public ProgramTest {
 protected:
  ValidationProgram() { setenv("MESHWRIGHT_CALIBRATION", path("mine.calib.json").c_str(), 1); }
  /// A GPT of 2 layers for two pipeline ranks.
  std::vector<std::string> job(std::vector<std::string> first, const std::string& micro_batch) {
    write_file(path("tiny.json"),
               R"({"model_type": "gpt2", "n_embd": 32, "n_head": 2, "n_layer": 2, "vocab_size": 256,
                   "n_positions": 16, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0})");
    first.insert(first.end(), {"--model", "./tiny.json", "--micro-batch", micro_batch});
    return with_strategy(std::move(first));
  }
  static std::vector<std::string> with_strategy(std::vector<std::string> first) {
    for (const char* word : {"--cluster", "this-machine", "--gpus", "2", "--pp", "2", "--dtype",
                             "fp32", "--global-batch", "4", "--seq", "16"})
      first.emplace_back(word);
    return first;
  }
  /// As if calibrated: one family of kernels, 2 cores. `product`: what a small one takes.
  void calibrate(Seconds product = Seconds(1e-5)) const {
    Calibration calibration;
    calibration.provenance["date"] = "by hand";
    calibration.machine = two_core_machine();
    KernelCurve products{.family = {.kind = KernelKind::kGemm}, .points = {}};
    for (const int m : {16, 64})
      products.points.push_back({.m = m,
                                 .n = 96,
                                 .k = 32,
                                 .flops = Flops(2.0 * m * 96 * 32),
                                 .memory_traffic = Bytes(4 * (m * 32 + 96 * 32 + m * 96)),
                                 .time = product * (m / 16.0)});
    calibration.kernels.push_back(products);
    write_file(path("mine.calib.json"), to_json(calibration));
  }
};

TEST_F(ValidationProgram, PlansForThisMachineOnceItIsCalibrated) {
  EXPECT_THAT(run(job({"simulate"}, "1")), fails_with(4, "run 'meshwright calibrate'"));
  calibrate();
  const ProgramRun after = run(job({"simulate"}, "1"));
  EXPECT_EQ(after.exit_code, 0) << after.standard_error;
  EXPECT_THAT(after.standard_output, HasSubstr("core of test processor"));
  EXPECT_THAT(run({"show", "this-machine"}).standard_output, HasSubstr("test processor"));
}

TEST_F(ValidationProgram, LooksForItsFolderBeforeItMeasures) {
  const ProgramRun refused = run({"calibrate", "--quick", "-o", "nowhere/mine.calib.json"});
  EXPECT_THAT(refused, fails_with(4, "--output: directory 'nowhere' does not exist"));
  EXPECT_EQ(refused.standard_error.find('%'), std::string::npos) << "it has measured";
}

TEST_F(ValidationProgram, LooksForItsPlaceBeforeItMeasures) {
  write_file(path("file"), "");
  setenv("MESHWRIGHT_CALIBRATION", path("file/mine.calib.json").c_str(), 1);
  for (const std::string& place : {std::string(), folder_.path().string()}) {
    std::vector<std::string> words{"calibrate", "--quick"};
    if (!place.empty()) words.insert(words.end(), {"-o", place});
    const ProgramRun refused = run(words);
    EXPECT_THAT(refused, fails_with(4, place.empty() ? "does not exist" : "is a directory"));
    EXPECT_EQ(refused.standard_error.find('%'), std::string::npos) << "it has measured";
  }
}

TEST_F(ValidationProgram, PlansForTheMachineThatACalibrationNames) {
  calibrate();
  std::filesystem::rename(path("mine.calib.json"), path("another.calib.json"));
  std::vector<std::string> words = job({"simulate", "--calibration", "another.calib.json"}, "1");
  const ProgramRun simulated = run(words);
  EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
  EXPECT_THAT(simulated.standard_output, HasSubstr("core of test processor"));
  // Half of it, and one of kernels alone:
  const std::string whole = read_file(path("another.calib.json"));
  write_file(path("another.calib.json"), whole.substr(0, whole.size() / 2));
  EXPECT_THAT(run(words), fails_with(3, "another.calib.json"));
  Calibration of_kernels = calibration_from_json(whole, "whole");
  of_kernels.machine.reset();
  write_file(path("another.calib.json"), to_json(of_kernels));
  EXPECT_THAT(run(words), fails_with(3, "does not describe a machine"));
}

/// A plan file has the calibration that it was made with: neither another one of this machine nor
/// its absence changes what the file says.
TEST_F(ValidationProgram, PlansStandAlone) {
  calibrate(Seconds(1e-5));
  ASSERT_EQ(run(job({"plan", "-o", "x.plan.json"}, "1")).exit_code, 0);
  const auto step_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", "x.plan.json", "--json"});
    const ProgramRun simulated = run(more);
    EXPECT_EQ(simulated.exit_code, 0) << simulated.standard_error;
    return Json::parse(simulated.standard_output).at("step_time_ns").get<std::int64_t>();
  };
  const std::int64_t planned = step_of({});
  EXPECT_EQ(Json::parse(read_file(path("x.plan.json")))["predicted"]["step_time_ns"], planned);
  calibrate(Seconds(1e-3));
  EXPECT_EQ(step_of({}), planned);
  EXPECT_GT(step_of({"--calibration", "mine.calib.json"}), planned) << "the flag comes first";
  std::filesystem::remove(path("mine.calib.json"));
  EXPECT_EQ(step_of({}), planned);
}

TEST_F(ValidationProgram, ComparesARunWithItsPrediction) {
  calibrate();
  ASSERT_EQ(run(job({"simulate", "--all-ranks", "-o", "p.pftrace"}, "1")).exit_code, 0);
  ASSERT_EQ(run(job({"run", "--steps", "3", "--all-steps", "-o", "m.pftrace"}, "1")).exit_code, 0);
  const ProgramRun compared = run({"compare", "p.pftrace", "m.pftrace", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.standard_error;
  const Json json = Json::parse(compared.standard_output);
  EXPECT_EQ(json["step"]["counted_steps"], 2);
  EXPECT_EQ(json["verdict"], nullptr);
  EXPECT_EQ(json["by_kind"]["F"]["tasks"], 8);  // 2 stages, 4 micro-batches
  EXPECT_EQ(json["by_stage"].size(), 2u);
  EXPECT_EQ(json["memory"]["ranks"].size(), 2u);
  const std::int64_t parts = json["attribution_ns"]["compute"].get<std::int64_t>() +
                             json["attribution_ns"]["communication"].get<std::int64_t>() +
                             json["attribution_ns"]["waiting"].get<std::int64_t>();
  const std::int64_t whole = json["step"]["measured_ns"].get<std::int64_t>() -
                             json["step"]["predicted_ns"].get<std::int64_t>();
  EXPECT_NEAR(static_cast<double>(parts), static_cast<double>(whole), 3.0) << "rounding of each";
}

/// 64 MiB is the size limit of texts, not of timelines: here an unknown field is that large.
TEST_F(ValidationProgram, ComparesTimelinesOfLongRuns) {
  calibrate();
  ASSERT_EQ(run(job({"simulate", "--all-ranks", "-o", "p.pftrace"}, "1")).exit_code, 0);
  ASSERT_EQ(run(job({"run", "--steps", "1", "-o", "m.pftrace"}, "1")).exit_code, 0);
  // Field 15, so many bytes: 2^26 as a varint of seven bits a byte.
  const std::string unknown = "\x7a\x80\x80\x80\x20" + std::string(std::size_t{1} << 26, '\0');
  write_file(path("m.pftrace"), read_file(path("m.pftrace")) + unknown);
  const ProgramRun compared = run({"compare", "p.pftrace", "m.pftrace"});
  EXPECT_EQ(compared.exit_code, 0) << compared.standard_error;
}

// Two stages, three steps of four micro-batches, an update behind each backward pass: one graph.
TEST_F(ValidationProgram, ComparesAllStepsTogetherWithoutAFlush) {
  calibrate();
  write_file(path("untied.json"),
             R"({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 2,
                 "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 48,
                 "vocab_size": 256, "max_position_embeddings": 16, "rms_norm_eps": 1e-5})");
  const auto job_of = [&](std::vector<std::string> first) {
    first.insert(first.end(), {"--model", "./untied.json", "--schedule", "pipedream"});
    return with_strategy(std::move(first));
  };
  const ProgramRun predicted = run(job_of({"simulate", "--steps", "3", "-o", "p.pftrace"}));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.standard_error;
  const ProgramRun measured = run(job_of({"run", "--steps", "3", "-o", "m.pftrace", "--json"}));
  ASSERT_EQ(measured.exit_code, 0) << measured.standard_error;
  EXPECT_EQ(Json::parse(measured.standard_output)["steps"].size(), 3u);
  const ProgramRun compared = run({"compare", "p.pftrace", "m.pftrace", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.standard_error;
  const Json json = Json::parse(compared.standard_output);
  EXPECT_EQ(json["by_kind"]["F"]["tasks"], 2 * 3 * 4);
  EXPECT_EQ(json["by_kind"]["optimizer"]["tasks"], 2 * 3 * 4);
  for (const Json& rank : json["memory"]["ranks"]) EXPECT_EQ(rank["error"], 0.0);
}

// A limit far below any machine's noise.
TEST_F(ValidationProgram, JudgesByTheExitCode) {
  calibrate();
  ASSERT_EQ(run(job({"simulate", "--all-ranks", "-o", "p.pftrace"}, "1")).exit_code, 0);
  ASSERT_EQ(run(job({"run", "--steps", "2", "-o", "m.pftrace"}, "1")).exit_code, 0);
  const ProgramRun beyond = run({"compare", "p.pftrace", "m.pftrace", "--max-error", "0.000001%"});
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_THAT(beyond.standard_output,
              HasSubstr("FAIL: step time and peak memory are not both within"));
}

TEST_F(ValidationProgram, RefusesARunOfAnotherPlan) {
  calibrate();
  ASSERT_EQ(run(job({"simulate", "--all-ranks", "-o", "p.pftrace"}, "1")).exit_code, 0);
  ASSERT_EQ(run(job({"run", "--steps", "1", "-o", "m.pftrace"}, "2")).exit_code, 0);
  EXPECT_THAT(run({"compare", "p.pftrace", "m.pftrace"}),
              fails_with(3, "not a measurement of the plan of p.pftrace"));
}

}  // namespace
}  // namespace meshwright
