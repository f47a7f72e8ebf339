#include "cli/plan/sizing_report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/plan/plan_search.hpp"
#include "cli/plan/run_cost_text.hpp"
#include "tests/cli/program_fixture.hpp"
#include "tests/golden.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;

TEST(RunCostText, TokensAreShort) {
  EXPECT_EQ(tokens_text(15'000'000'000'000), "15T");
  EXPECT_EQ(tokens_text(1'400'000'000), "1.4B");
  EXPECT_EQ(tokens_text(6'553'600'000), "6.5536B");
  EXPECT_EQ(tokens_text(1'234'567'800'000'000), "1234.5678T");
  EXPECT_EQ(tokens_text(1'234'567), "1,234,567");
  EXPECT_EQ(tokens_text(999), "999");
}

TEST(RunCostText, DaysHaveThreeDigits) {
  EXPECT_EQ(days_text(Seconds(86'400 * 73.24)), "73.2");
  EXPECT_EQ(days_text(Seconds(86'400 * 0.01234)), "0.0123");
  EXPECT_EQ(days_text(Seconds(86'400 * 2226.4)), "2,226");
}

/// Three sizes of one job with step times made by hand.
class SizingReport : public testing::Test {
 protected:
  SizingReport() {
    request_.models = {"gpt2"};
    request_.clusters = {"p5.48xlarge"};
    request_.global_batch = 64;
    request_.sequence_length = 1024;
    request_.run = PlannedRun{.tokens = 6'553'600'000};  // 100,000 steps of 65,536 tokens
    request_.deadline = Seconds(86'400 * 2.0);
    model_.text.name = "gpt2";
    cluster_ = load_plan_cluster("p5.48xlarge", {}, Bytes());
    add_point(8, Seconds(2.7));     // 270,000 s = 3.125 days
    add_point(16, Seconds(1.35));   // 1.5625 days
    add_point(32, Seconds(0.675));  // 0.78125 days
  }
  SizingPoint& add_point(int gpus, Seconds step) {
    SizingPoint& point = sizing_.points.emplace_back();
    point.is_searched = true;
    point.search.model = &model_;
    point.search.cluster = &cluster_;
    point.search.goal = {.gpus = gpus, .global_batch = 64, .sequence_length = 1024};
    RankedPlan plan;
    plan.plan.strategy.degrees.data = gpus;
    plan.evaluation.step_time = to_ticks(step);
    point.search.result.plans.push_back(plan);
    point.search.result.certificate = {.candidates = 1000, .proved_optimal = true};
    set_figures(point.search, request_.run);
    return point;
  }
  PlanModel model_;
  PlanCluster cluster_;
  PlanRequest request_;
  Sizing sizing_;
};

TEST_F(SizingReport, IsATableOfSizesWithARecommendation) {
  SizingPoint& impossible = add_point(24, Seconds(1));
  impossible.search.result.plans.clear();
  impossible.search.figures.clear();
  impossible.problems = {{"--gpus", "the batch does not divide", ""}};
  impossible.is_searched = false;
  judge_points(sizing_, request_);
  sizing_.time = Seconds(0.5);
  expect_golden(to_text(sizing_report(sizing_, request_)), "plan-sizes.txt");
}

// 8 GPUs are one node of 55.04 USD per hour: 270,000 s / 3600 x 55.04 = 4,128 USD; two nodes take
// half the time. All three are on the front: more GPUs are faster. 16 are the fewest within two
// days.
TEST_F(SizingReport, JsonHasTheKeysThatScriptsRelyOn) {
  judge_points(sizing_, request_);
  const Json json = Json::parse(sizing_json(sizing_, request_));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["recommended"], 1);
  EXPECT_EQ(json["run"]["tokens"], 6'553'600'000);
  EXPECT_EQ(json["deadline_days"], 2);
  ASSERT_EQ(json["points"].size(), 3u);
  const Json& first = json["points"][0];
  EXPECT_EQ(first["gpus"], 8);
  EXPECT_EQ(first["meets_deadline"], false);
  EXPECT_EQ(first["on_pareto_front"], true);
  EXPECT_EQ(first["reason"], nullptr);
  EXPECT_EQ(first["plan"]["training"]["steps"], 100'000);
  EXPECT_EQ(first["plan"]["training"]["days"], 3.125);
  EXPECT_EQ(first["plan"]["training"]["gpu_hours"], 600);
  EXPECT_NEAR(first["plan"]["training"]["cost_usd"], 4128, 1e-9);
  EXPECT_NEAR(json["points"][1]["plan"]["training"]["cost_usd"], 4128, 1e-9);
  EXPECT_EQ(json["points"][1]["meets_deadline"], true);
}

// 0.78125 days on 32 GPUs: for half a day 32 x 0.78125 / 0.5 = 50.
TEST_F(SizingReport, SaysHowManyGpusAMissedDeadlineNeeds) {
  request_.deadline = Seconds(86'400 * 0.5);
  judge_points(sizing_, request_);
  EXPECT_EQ(sizing_.recommended, 2u);
  EXPECT_NE(to_text(sizing_report(sizing_, request_))
                .find("No plan meets the deadline of 0.5 days. The fastest takes 0.781 days on 32 "
                      "GPUs; at its throughput per GPU, 50 GPUs would be needed."),
            std::string::npos);
}

TEST_F(SizingReport, APlanThatCostsMoreTimeAndGpusIsNotOnTheFront) {
  add_point(64, Seconds(0.7));
  judge_points(sizing_, request_);
  EXPECT_TRUE(sizing_.points[2].is_on_front);
  EXPECT_FALSE(sizing_.points[3].is_on_front);
}

/// The program, as a user runs it.
class PlanSizes : public ProgramTest {
 protected:
  ProgramRun plan(const std::string& arguments) const {
    return run(words_of("plan --model gpt2 --cluster p5.48xlarge --seq 1024 " + arguments));
  }
};

TEST_F(PlanSizes, PlansEverySizeAndWritesTheRecommendedPlan) {
  const ProgramRun done = plan(
      "--global-batch 48 --pp 2 --gpus 8..16,24,7 --tokens 300B --deadline 300d --json -o "
      "best.plan.json");
  EXPECT_EQ(done.exit_code, 0) << done.standard_error;
  const Json json = Json::parse(done.standard_output);
  ASSERT_EQ(json["points"].size(), 4u);           // 7, 8, 16 and 24
  EXPECT_EQ(json["points"][0]["plan"], nullptr);  // seven GPUs are no pairs
  EXPECT_NE(json["points"][0]["reason"].get<std::string>().find("divide"), std::string::npos);
  const auto chosen = json["recommended"].get<std::size_t>();
  EXPECT_EQ(chosen, 1u);  // eight H100 train GPT-2 on 300B tokens within days
  const PlanFile file = plan_file_from_json(read_file(path("best.plan.json")), "best.plan.json");
  EXPECT_EQ(to_nanoseconds(file.predicted->step_time),
            json["points"][chosen]["plan"]["step_time_ns"].get<std::int64_t>());
}

TEST_F(PlanSizes, ExitsWithOneIfNoPlanMeetsTheDeadline) {
  const ProgramRun late = plan("--global-batch 64 --gpus 8 --tokens 300B --deadline 1s");
  EXPECT_EQ(late.exit_code, 1) << late.standard_error;
  EXPECT_NE(late.standard_output.find("No plan meets the deadline"), std::string::npos);
}

// steps x step time, from the figures of the same plan.
TEST_F(PlanSizes, OneSearchHasDaysAndCostPerPlan) {
  const ProgramRun done =
      plan("--global-batch 64 --gpus 8 --tokens 65536000 --top 2 --price 2 --json");
  ASSERT_EQ(done.exit_code, 0) << done.standard_error;
  const Json json = Json::parse(done.standard_output);
  EXPECT_EQ(json["run"]["tokens_per_step"], 65'536);
  for (const Json& each : json["plans"]) {
    const double seconds = 1000 * each["step_time_ns"].get<double>() / 1e9;
    EXPECT_EQ(each["training"]["steps"], 1000);
    EXPECT_NEAR(each["training"]["days"].get<double>(), seconds / 86'400, 1e-9);
    EXPECT_NEAR(each["training"]["cost_usd"].get<double>(), 2 * 8 * seconds / 3600, 1e-6);
  }
}

TEST_F(PlanSizes, FindsTheFewestGpusAndTheLongestSequence) {
  const ProgramRun fewest = plan("--global-batch 64 --gpus auto --top 1 --json");
  EXPECT_EQ(Json::parse(fewest.standard_output)["fewest_gpus"],
            Json({{"gpus", 1}, {"proved", true}}));
  const ProgramRun longest =
      run(words_of("plan --model gpt2 --cluster p5.48xlarge --gpus 1 --global-batch 1 --seq max "
                   "--top 1 --json"));
  // GPT-2 has 1,024 learned positions.
  EXPECT_EQ(Json::parse(longest.standard_output)["longest_sequence"],
            Json({{"tokens", 1024}, {"unit", 1024}, {"proved", true}}));
}

TEST_F(PlanSizes, SaysWhichModelsFit) {
  const ProgramRun done = run(words_of(
      "plan --model gpt2,gpt3-175b --cluster p5.48xlarge --gpus 8 --global-batch 8 --seq 1024"));
  EXPECT_EQ(done.exit_code, 0) << done.standard_error;
  EXPECT_NE(done.standard_output.find("\n1  gpt2 "), std::string::npos);
  EXPECT_NE(done.standard_output.find("\nNo plan for gpt3-175b, 8 GPUs: "), std::string::npos);
}

}  // namespace
}  // namespace meshwright
