#include "cli/validation/step_range.hpp"

#include "tests/cli/run/tiny_run.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

PlanFigures figures_of_one_second() {
  PlanFigures figures;
  figures.step_time = Ticks(kTicksPerSecond);
  return figures;
}

TEST(StepRange, IsTheToleranceOrTheRangeOfPublishedRuns) {
  PlanFigures figures = figures_of_one_second();
  EXPECT_THROW(step_range_of("gpt2", figures, std::nullopt), InputError);
  const StepRange tolerant = step_range_of("gpt2", figures, 0.25);  // exact in binary
  EXPECT_EQ(tolerant.lowest, Ticks(kTicksPerSecond / 4 * 3));
  EXPECT_EQ(tolerant.highest, Ticks(kTicksPerSecond / 4 * 5));
  EXPECT_EQ(tolerant.source, "predicted step time -25.0 % to +25.0 %");
  EXPECT_EQ(step_range_of("gpt2", figures, 2.0).lowest, Ticks());
  figures.range = StepTimeRange{.p10 = Ticks(7), .p90 = Ticks(9), .validated_runs = 5};
  const StepRange validated = step_range_of("gpt2", figures, std::nullopt);
  EXPECT_EQ(validated.lowest, Ticks(7));
  EXPECT_EQ(validated.highest, Ticks(9));
  EXPECT_EQ(validated.source, "p10 to p90 of 5 similar published runs");
}

TEST(StepRange, SurvivesItsFile) {
  const StepRange range = step_range_of("gpt2", figures_of_one_second(), 0.25);
  EXPECT_EQ(step_range_from_json(to_json(range), "step.range.json"), range);
}

TEST(StepRange, NamesWhatIsWrongWithAFile) {
  const auto complaint = [](const char* text) {
    return complaints_of([&] { step_range_from_json(text, "f.json"); });
  };
  EXPECT_THAT(complaint("{"), HasSubstr("f.json:1:1: invalid JSON"));
  EXPECT_THAT(complaint(R"({"schema": 2, "model": "m", "strategy": "s", "source": "",
      "step_time": {"predicted_ns": 1, "lowest_ns": 1, "highest_ns": 1}})"),
              HasSubstr("f.json#/schema"));
  EXPECT_THAT(complaint(R"({"schema": 1, "model": "m", "strategy": "s", "source": "",
      "step_time": {"predicted_ns": 1, "lowest_ns": 3, "highest_ns": 2}})"),
              HasSubstr("f.json#/step_time/lowest_ns: must be at most highest_ns, 2"));
}

// The limits belong to the range.
TEST(StepRange, IsLeftBelowAndAbove) {
  StepRange range;
  range.lowest = Ticks(90 * (kTicksPerSecond / 1000));
  range.highest = Ticks(110 * (kTicksPerSecond / 1000));
  EXPECT_EQ(outside_range_text(range, range.lowest, "f"), "");
  EXPECT_EQ(outside_range_text(range, range.highest, "f"), "");
  EXPECT_EQ(outside_range_text(range, Ticks(120 * (kTicksPerSecond / 1000)), "f"),
            "step time 120 ms is above the predicted range of 90 ms to 110 ms in f\n");
  EXPECT_EQ(outside_range_text(range, Ticks(80 * (kTicksPerSecond / 1000)), "f"),
            "step time 80 ms is below the predicted range of 90 ms to 110 ms in f\n");
}

/// A model that trains in milliseconds; its range, and the same with other limits.
class Watch : public TinyRun {
 protected:
  ProgramRun run_line(const std::string& line) const { return ProgramTest::run(words_of(line)); }
  std::string job() const {
    return " --model " + path("tiny.json") + " --cluster cpu-laptop --dtype fp32 " + kTwoStages;
  }
  std::string file_with(const char* name, std::int64_t lowest, std::int64_t highest) const {
    auto range = nlohmann::ordered_json::parse(read_file(path("step.range.json")));
    range["step_time"]["lowest_ns"] = lowest;
    range["step_time"]["highest_ns"] = highest;
    write_file(path(name), range.dump());
    return path(name);
  }
  void SetUp() override {
    const ProgramRun written =
        run_line("simulate" + job() + " --all-ranks -o predicted.pftrace --write-watch " +
                 path("step.range.json") + " --tolerance 10%");
    ASSERT_EQ(written.exit_code, 0) << written.standard_error;
    wide_ = file_with("wide.json", 0, 1'000'000'000'000);
    low_ = file_with("low.json", 0, 1);
    high_ = file_with("high.json", 1'000'000'000'000, 1'000'000'000'000);
  }
  std::string wide_, low_, high_;
};

TEST_F(Watch, WritesTheRangeOfThePrediction) {
  const StepRange range = read_step_range(path("step.range.json"));
  const auto json = nlohmann::json::parse(run_line("simulate" + job() + " --json").standard_output);
  EXPECT_EQ(to_nanoseconds(range.predicted), json["step_time_ns"].get<std::int64_t>());
  EXPECT_NEAR(ratio(range.lowest, range.predicted), 0.9, 1e-6);
  EXPECT_NEAR(ratio(range.highest, range.predicted), 1.1, 1e-6);
  EXPECT_EQ(range.model, "tiny");
}

TEST_F(Watch, FailsARunThatLeavesTheRange) {
  const std::string line = "run" + job() + " --steps 2 --watch ";
  EXPECT_EQ(run_line(line + wide_).exit_code, 0);
  const ProgramRun above = run_line(line + low_);
  EXPECT_THAT(above, fails_with(1, " is above the predicted range of 0 s to 1 ns in " + low_));
  EXPECT_THAT(above.standard_output, HasSubstr("median step time"));
  EXPECT_THAT(run_line(line + high_), fails_with(1, " is below the predicted range of "));
}

TEST_F(Watch, FailsAComparisonThatLeavesTheRange) {
  ASSERT_EQ(run_line("run" + job() + " --steps 2 --all-steps -o measured.pftrace").exit_code, 0);
  const std::string line = "compare predicted.pftrace measured.pftrace --watch ";
  EXPECT_EQ(run_line(line + wide_).exit_code, 0);
  EXPECT_THAT(run_line(line + low_), fails_with(1, " is above the predicted range of "));
  EXPECT_THAT(run_line(line + high_), fails_with(1, " is below the predicted range of "));
}

TEST_F(Watch, RefusesARangeOfAnotherPlan) {
  EXPECT_THAT(run_line("run --model " + path("tiny.json") +
                       " --cluster cpu-laptop --dtype fp32 --gpus 2 --dp 2 --global-batch 4 --seq "
                       "16 --steps 1 --watch " +
                       wide_),
              fails_with(3, "is for the strategy 'PP2"));
}

TEST_F(Watch, NeedsARange) {
  EXPECT_THAT(run_line("simulate" + job() + " --write-watch x.json"),
              fails_with(3, "--write-watch: the prediction is unvalidated and has no range"));
  EXPECT_THAT(run_line("simulate" + job() + " --tolerance 5%"),
              fails_with(2, "--tolerance: requires '--write-watch'"));
  EXPECT_THAT(run_line("simulate" + job() + " --write-watch x.json --tolerance none"),
              fails_with(2, "--tolerance: invalid value 'none'"));
}

}  // namespace
}  // namespace meshwright
