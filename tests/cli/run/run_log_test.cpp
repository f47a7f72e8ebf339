/// The log and the progress line of `run`.
#include "cli/run/run_log.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run/run_progress.hpp"
#include "tests/cli/run/tiny_run.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;

// 100 tokens and 4 GFLOP in 2 s: 50 tokens/s, and 2 of 8 GFLOP/s.
TEST(RunLog, HasAllFiguresOfAStep) {
  const MeasuredStep step{.loss = 2.5,
                          .gradient_norm = 0.5,
                          .validation_loss = 3,
                          .learning_rate = 0.25F,
                          .peak_memory = Bytes(1024),
                          .times = {},
                          .duration = to_ticks(Seconds(2))};
  const StepRates rates{
      .tokens_per_step = 100, .model_flops_per_step = Flops(4e9), .peak = FlopsPerSecond(8e9)};
  EXPECT_EQ(log_line(7, step, rates),
            R"({"step":7,"loss":2.5,"validation_loss":3.0,"gradient_norm":0.5,"lr":0.25,)"
            R"("step_time_s":2.0,)"
            R"("tokens_per_s":50.0,"mfu":0.25,"peak_memory_bytes":1024})"
            "\n");
}

TEST(RunLog, LeavesOutWhatIsUnknown) {
  const Json line = Json::parse(
      log_line(0, {.loss = 1, .times = {}, .duration = to_ticks(Seconds(1))}, StepRates()));
  EXPECT_TRUE(line["validation_loss"].is_null());
  EXPECT_TRUE(line["gradient_norm"].is_null());
  EXPECT_TRUE(line["mfu"].is_null());
}

/// The last line is that of a run that was killed while it wrote.
TEST(RunLog, IsCutWhereARunResumes) {
  const std::string log = "{\"step\": 0}\n{\"step\": 1}\n{\"step\": 2}\n{\"st";
  EXPECT_EQ(log_before(log, 2, "log"), "{\"step\": 0}\n{\"step\": 1}\n");
  EXPECT_EQ(log_before("", 2, "log"), "");
  try {
    log_before("{\"step\": 0}\nno log\n{\"step\": 1}\n", 2, "log");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(format(error.diagnostics().front()),
              "error: log:2: not a line of a run's log\n"
              "  hint: use the log of the run to resume, or another file\n");
  }
}

TEST(ProgressLine, ShowsTheTimeLeft) {
  const auto text = [](double seconds) {
    return clock_text(std::chrono::duration<double>(seconds));
  };
  EXPECT_EQ(text(0), "0:00");
  EXPECT_EQ(text(59.2), "1:00");
  EXPECT_EQ(text(3599), "59:59");
  EXPECT_EQ(text(3661), "1:01:01");
}

class LoggedRun : public TinyRun {
 protected:
  std::vector<Json> log_of(const std::string& options) const {
    losses_of(run_program(call_of("--global-batch 4 --seq 16 --json --log log " + options)));
    std::ifstream file(path("log"));
    std::vector<Json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
    return lines;
  }
};

TEST_F(LoggedRun, ContinuesItsLogWhenItResumes) {
  std::filesystem::create_directory(path("states"));
  log_of("--gpus 1 --steps 4 --save states --save-every 2");
  std::filesystem::remove(path("states/step-000004.safetensors"));
  const std::vector<Json> log = log_of("--gpus 1 --steps 3 --resume states");
  ASSERT_EQ(log.size(), 5u);
  for (std::size_t step = 0; step < log.size(); ++step) EXPECT_EQ(log[step]["step"], step);
  EXPECT_EQ(log_of("--gpus 1 --steps 1").size(), 1u);
}

// The rate grows by 0.01 / 2 a step.
TEST_F(LoggedRun, HasTheSameFiguresUnderEveryPlan) {
  const std::string options = " --steps 3 --lr 0.01 --warmup 2";
  const std::vector<Json> one = log_of("--gpus 1" + options);
  for (const std::string plan :
       {"--gpus 4 --pp 2 --tp 2", "--gpus 2 --dp 2 --zero 3 --ranks job"}) {
    const std::vector<Json> many = log_of(plan + options);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t step = 0; step < one.size(); ++step) {
      EXPECT_NEAR(many[step]["lr"], step == 0 ? 0.005 : 0.01, 1e-9);
      for (const char* figure : {"loss", "gradient_norm"})
        EXPECT_NEAR(many[step][figure], one[step][figure], 1e-4) << figure;
      EXPECT_GT(one[step]["gradient_norm"], 0.01);
      EXPECT_LT(many[step]["peak_memory_bytes"], one[step]["peak_memory_bytes"]);
    }
  }
}

/// By --every, counted over resumed parts, and after the last step; the held-out text is longer
/// than two global batches of 64 tokens.
TEST_F(LoggedRun, HasValidationLosses) {
  write_file(path("held-out"), std::string(150, 'a'));
  std::filesystem::create_directory(path("states"));
  const std::string validation = " --validation held-out --every 3 ";
  log_of("--gpus 1 --steps 2 --save states" + validation);
  const std::vector<Json> log = log_of("--gpus 1 --steps 4 --resume states" + validation);
  std::vector<bool> has_loss;
  for (const Json& line : log) has_loss.push_back(line["validation_loss"].is_number());
  EXPECT_THAT(has_loss, testing::ElementsAre(false, true, true, false, false, true));
  EXPECT_LT(log[5]["validation_loss"], log[1]["validation_loss"]);
  const std::vector<Json> two_stages = log_of("--gpus 2 --pp 2 --steps 6" + validation);
  EXPECT_NEAR(two_stages[5]["validation_loss"].get<double>(),
              log[5]["validation_loss"].get<double>(), 1e-5);
}

}  // namespace
}  // namespace meshwright
