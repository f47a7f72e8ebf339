#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/flags/sweep_axes.hpp"
#include "tests/cli/run_program.hpp"

namespace meshwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ProgramRun run_sweep_of_gpt2(std::vector<std::string> more) {
  std::vector<std::string> arguments{"sweep",  "--model", "gpt2",  "--cluster", "dgx-a100",
                                     "--gpus", "8",       "--seq", "1024"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program({.program = MESHWRIGHT_PROGRAM, .arguments = std::move(arguments)});
}

TEST(SweptFlag, IsWrittenWithAndWithoutDashes) {
  for (const char* text : {"pp=1,2", "--pp=1,2"}) {
    const SweptFlag swept = swept_flag_from_text(text);
    EXPECT_EQ(swept.flag, "--pp");
    EXPECT_THAT(swept.values, ElementsAre("1", "2"));
  }
  for (const char* text : {"", "pp", "pp=", "pp=1,,2", "=1", "pp=1,"})
    EXPECT_THROW(swept_flag_from_text(text), UsageError) << text;
}

TEST(Combinations, VaryTheLastFlagFastest) {
  const std::vector<SweptFlag> swept{{"--pp", {"1", "2"}}, {"--schedule", {"gpipe", "1f1b"}}};
  const auto all = combinations({}, swept);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_THAT(all[2].value_of_flag, ElementsAre(1, 0));
  EXPECT_EQ(all[2].flags.choices.pipeline, 2);
  EXPECT_EQ(all[2].flags.choices.schedule, "gpipe");
}

TEST(Combinations, RefuseWhatNoFlagTakes) {
  const auto what = [](std::vector<SweptFlag> swept) {
    try {
      combinations({}, swept);
    } catch (const UsageError& error) {
      const Diagnostic& d = error.diagnostics().front();
      return d.where + ": " + d.what + " (" + d.hint + ")";
    }
    return std::string("accepted");
  };
  EXPECT_THAT(what({{"--schedul", {"1f1b"}}}), HasSubstr("did you mean '--schedule'?"));
  EXPECT_THAT(what({{"--pp", {"two"}}}),
              HasSubstr("--pp: invalid value 'two': expected a whole number"));
  EXPECT_THAT(what({{"--pp", {"1"}}, {"--pp", {"2"}}}), HasSubstr("duplicate flag '--pp'"));
  EXPECT_THAT(what({{"--sequence-parallel", {"1"}}}), HasSubstr("takes no value"));
  const std::vector<std::string> many(400, "1");
  EXPECT_THAT(what({{"--pp", many}, {"--tp", many}}), HasSubstr("more than 100000"));
}

TEST(SweepProgram, ShowsTheBubbleOfEveryDepthAndBatch) {
  const ProgramRun run =
      run_sweep_of_gpt2({"--over", "pp=1,2,5,8", "--over", "global-batch=8,64", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.standard_error;
  const auto json = nlohmann::json::parse(run.standard_output);
  ASSERT_EQ(json["points"].size(), 8U);
  const auto bubble = [&](std::size_t i) {
    return json["points"][i]["plan"]["bubble"]["period"].get<double>();
  };
  const auto busiest = [&](std::size_t i) {
    return json["points"][i]["plan"]["bubble"]["busiest_rank_period"].get<double>();
  };
  EXPECT_EQ(bubble(0), 0);                           // no pipeline
  EXPECT_GT(bubble(6), bubble(7));                   // more micro-batches, smaller bubble
  EXPECT_GT(bubble(6), busiest(6));                  // unequal stages
  EXPECT_TRUE(json["points"][4]["plan"].is_null());  // 8 devices are no multiple of 5
  EXPECT_THAT(json["points"][4]["problems"][0]["what"].get<std::string>(),
              HasSubstr("not a multiple"));
}

// As in Megatron-LM, --sequence-parallel has no effect without tensor parallelism.
TEST(SweepProgram, SequenceParallelismIsForPointsWithTensorParallelism) {
  const ProgramRun run = run_sweep_of_gpt2({"--global-batch", "8", "--sequence-parallel",
                                            "--tp-comm-overlap", "--over", "tp=1,2", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.standard_error;
  const auto points = nlohmann::json::parse(run.standard_output)["points"];
  EXPECT_FALSE(points[0]["plan"]["strategy"]["sequence_parallel"].get<bool>());
  EXPECT_TRUE(points[1]["plan"]["strategy"]["sequence_parallel"].get<bool>());
  const ProgramRun fixed =
      run_sweep_of_gpt2({"--tp", "1", "--sequence-parallel", "--over", "global-batch=8,16"});
  EXPECT_THAT(fixed.standard_output, HasSubstr("requires a tensor-parallel size above 1"));
}

TEST(SweepProgram, WritesCsv) {
  const ProgramRun run = run_sweep_of_gpt2({"--global-batch", "8", "--over", "pp=2,5", "-o", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.standard_error;
  EXPECT_THAT(run.standard_output, HasSubstr("pp,step_s,period_s,bubble,mfu,tokens_per_s_per_gpu,"
                                             "peak_memory_bytes,fits,busiest_rank_bubble\n2,0."));
  EXPECT_THAT(run.standard_output, HasSubstr("\n5,,,,,,,,\n"));
}

}  // namespace
}  // namespace meshwright
