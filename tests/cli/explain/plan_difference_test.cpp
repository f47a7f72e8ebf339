#include "cli/explain/plan_difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program_fixture.hpp"
#include "tests/golden.hpp"
#include "tests/values_of.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Ticks milliseconds(std::int64_t n) { return Ticks(n * (kTicksPerSecond / 1000)); }
constexpr Bytes gib(std::int64_t n) { return Bytes(n << 30); }

/// A step of 100 ms of plan A against 80 ms of plan B: 10 more of exposed tensor communication,
/// 30 less of warm-up. Both process 2,048 tokens on 4 GPUs of 16 GiB.
class HandmadeDifference : public testing::Test {
 protected:
  HandmadeDifference() {
    set(d_.a, job_a_, milliseconds(100), milliseconds(0), milliseconds(40));
    set(d_.b, job_b_, milliseconds(80), milliseconds(10), milliseconds(10));
    d_.b.evaluation.peak_memory[0][MemoryClass::kActivations] = gib(5);
    d_.b.fullest_pipeline_rank = 1;
    refresh();
    d_.choices = {{"tp", "1", "2"}, {"schedule", "1f1b", "zb-h1"}};
  }
  /// 60 ms of products, the given communication, and the rest of the step is warm-up.
  static void set(ComparedPlan& plan, Job& job, Ticks step, Ticks exposed, Ticks warm_up) {
    job.file.model_name = "toy";
    job.file.cluster_name = "box";
    job.file.plan.strategy.degrees.data = 4;
    job.file.plan.strategy.global_batch = 2;
    job.file.plan.strategy.sequence_length = 1024;
    plan.job = &job;
    Evaluation& e = plan.evaluation;
    e.step_time = step;
    e.mfu = ratio(milliseconds(40), step);
    RankBreakdown rank;
    rank.compute[static_cast<std::size_t>(KernelKind::kGemm)] = milliseconds(60);
    rank.exposed_communication[static_cast<std::size_t>(Axis::kTensor)] = exposed;
    rank.bubble[static_cast<std::size_t>(BubbleCause::kWarmUp)] = warm_up;
    e.ranks = {rank};
    e.multiplicity = {4};
    e.peak_memory.resize(1);
    e.peak_memory[0][MemoryClass::kWeights] = gib(10);
    e.memory_capacity = gib(16);
  }
  /// What compare_plans() derives from the evaluations.
  void refresh() {
    for (ComparedPlan* plan : {&d_.a, &d_.b}) {
      const Strategy& s = plan->job->file.plan.strategy;
      const double tokens = static_cast<double>(s.global_batch * s.sequence_length);
      plan->evaluation.tokens_per_second_per_gpu = tokens /
                                                   to_seconds(plan->evaluation.step_time).value /
                                                   static_cast<double>(rank_count(s.degrees));
      plan->figures = figures_of(s, plan->evaluation, "");
    }
    d_.terms = difference(d_.a.evaluation, d_.b.evaluation);
  }
  Job job_a_, job_b_;
  PlanDifference d_;
};

TEST_F(HandmadeDifference, IsATableTermByTermWithAReason) {
  expect_golden(to_text(difference_text(d_)), "explain-against.txt");
}

// 100 / 80 - 1 = 25 %.
TEST_F(HandmadeDifference, SaysWhyTheFasterPlanIsFaster) {
  EXPECT_EQ(why_faster(d_),
            "B is 25.0 % faster than A (20.000 ms per step): 30.000 ms less "
            "bubble; but 10.000 ms more exposed tp communication.");
  std::swap(d_.a, d_.b);
  refresh();
  EXPECT_EQ(why_faster(d_),
            "A is 25.0 % faster than B (20.000 ms per step): 30.000 ms less "
            "bubble; but 10.000 ms more exposed tp communication.");
}

TEST_F(HandmadeDifference, OfEqualPlansSaysSo) {
  d_.b = d_.a;
  refresh();
  EXPECT_EQ(why_faster(d_), "A and B are equally fast.");
}

// B has twice the tokens in 80 ms: 2.5 times the tokens per second.
TEST_F(HandmadeDifference, ComparesTokensPerSecondIfStepsHaveDifferentTokens) {
  job_b_.file.plan.strategy.global_batch = 4;
  refresh();
  EXPECT_EQ(why_faster(d_),
            "B processes 2.5 times as many tokens per second; its steps have 4,096 tokens instead "
            "of 2,048, so that step times do not compare.");
}

// 8 GPUs instead of 4 in 80 ms instead of 100: 1 / 1.6 of the tokens per second and GPU.
TEST_F(HandmadeDifference, SaysWhatMoreGpusAchieveEach) {
  job_b_.file.plan.strategy.degrees.data = 8;
  refresh();
  EXPECT_THAT(why_faster(d_),
              HasSubstr(" It uses 8 GPUs instead of 4: 37.5 % fewer tokens per second and GPU."));
}

TEST_F(HandmadeDifference, OfDifferentModelsRefersToTheUtilization) {
  job_b_.file.model_config = "another";
  d_.a.figures.mfu = 0.25;
  d_.b.figures.mfu = 0.5;
  EXPECT_THAT(why_faster(d_), HasSubstr(" The models differ: compare the utilization, MFU 25.0 % "
                                        "(A) and 50.0 % (B)."));
}

TEST_F(HandmadeDifference, WarnsOfWhatDoesNotFitAndOfOverlappingRanges) {
  d_.b.evaluation.peak_memory[0][MemoryClass::kActivations] = gib(8);
  refresh();
  d_.a.figures.range = StepTimeRange{milliseconds(90), milliseconds(110), 3};
  d_.b.figures.range = StepTimeRange{milliseconds(72), milliseconds(91), 3};
  EXPECT_THAT(why_faster(d_), HasSubstr(" B does not fit: it lacks 2 GiB. The ranges p10 to p90 of "
                                        "their predictions overlap."));
  d_.b.figures.range->p90 = milliseconds(89);
  EXPECT_THAT(why_faster(d_), testing::Not(HasSubstr("overlap")));
}

JobFlags gpt2_job() {
  JobFlags flags;
  flags.sources.model = "gpt2";
  flags.sources.cluster = "dgx-a100";
  flags.gpus = 16;
  flags.strategy.global_batch = 64;
  flags.strategy.sequence_length = 1024;
  return flags;
}

TEST(PlanDifference, ListsTheChoicesThatDiffer) {
  JobFlags flags = gpt2_job();
  const Job a = load_job(flags);
  flags.strategy.choices.pipeline = 2;
  flags.strategy.choices.zero = 1;
  flags.strategy.choices.buckets = GradientBuckets{.rule = BucketRule::kPyTorch, .bytes = {}};
  flags.sources.trainer = "torchtitan";
  const Job b = load_job(flags);
  const PlanDifference d = compare_plans(a, b);
  EXPECT_THAT(values_of(d.choices, &DifferingChoice::name),
              ElementsAre("trainer", "pp", "dp", "zero", "bucket", "layers per stage"));
  EXPECT_EQ(d.choices[1].a, "1");
  EXPECT_EQ(d.choices[1].b, "2");
  EXPECT_EQ(d.choices[4].a, "default");
  EXPECT_EQ(d.choices[4].b, "pytorch");
  ASSERT_FALSE(d.single_changes.empty());
  EXPECT_EQ(d.single_changes.front().change, "parallel sizes");
}

TEST(PlanDifference, OfAJobAndItselfIsEmpty) {
  const Job job = load_job(gpt2_job());
  const PlanDifference d = compare_plans(job, job);
  EXPECT_TRUE(d.choices.empty());
  EXPECT_TRUE(d.single_changes.empty());
  for (const auto& term : d.terms.step) EXPECT_EQ(term.change(), Ticks());
  EXPECT_THAT(to_text(difference_text(d)), HasSubstr("The plans are equal.\n"));
}

// One choice alone is plan B itself: nothing to show in addition.
TEST(PlanDifference, LeavesOutTheSingleChangeThatGivesPlanB) {
  JobFlags flags = gpt2_job();
  const Job a = load_job(flags);
  flags.strategy.choices.recompute = Recompute{RecomputeKind::kFull, 0};
  const Job b = load_job(flags);
  EXPECT_TRUE(compare_plans(a, b).single_changes.empty());
}

TEST(PlanDifference, TellsModelsOfTheSameNameApart) {
  const Job a = load_job(gpt2_job());
  Job b = load_job(gpt2_job());
  b.file.model_config += " ";
  const PlanDifference d = compare_plans(a, b);
  ASSERT_EQ(d.choices.size(), 1u);
  EXPECT_EQ(d.choices[0].b, "gpt2 (changed)");
}

/// The program, as a user runs it.
class ExplainAgainst : public ProgramTest {};

TEST_F(ExplainAgainst, JsonTermsAddUpToBothSteps) {
  const std::string job = " --model gpt2 --cluster dgx-a100 --gpus 16 --global-batch 64 --seq 1024";
  ASSERT_EQ(run(words_of("plan" + job + " --pp 4 -o b.plan.json")).exit_code, 0);
  const ProgramRun explained =
      run(words_of("explain" + job + " --tp 2 --against b.plan.json --json"));
  ASSERT_EQ(explained.exit_code, 0) << explained.standard_error;
  const Json json = Json::parse(explained.standard_output);
  std::int64_t a = 0, b = 0, change = 0, memory = 0;
  for (const Json& term : json["step_terms"]) {
    a += term["a_ps"].get<std::int64_t>();
    b += term["b_ps"].get<std::int64_t>();
    change += term["change_ps"].get<std::int64_t>();
  }
  for (const Json& term : json["memory_terms"]) memory += term["b_bytes"].get<std::int64_t>();
  EXPECT_EQ(to_nanoseconds(Ticks(a)), json["a"]["plan"]["step_time_ns"]);
  EXPECT_EQ(to_nanoseconds(Ticks(b)), json["b"]["plan"]["step_time_ns"]);
  EXPECT_EQ(change, b - a);
  EXPECT_EQ(memory, json["b"]["plan"]["peak_memory_bytes"]);
  EXPECT_EQ(json["a"]["gpus"], 16);
  EXPECT_EQ(json["choices"][0]["choice"], "tp");
}

// 405B on 1,024 H100: a faster split needs more memory than there is.
TEST_F(ExplainAgainst, OnePlanNamesTheFastestChangeThatDoesNotFit) {
  const std::string job =
      "explain --model llama-3.1-405b --cluster dgx-h100 --gpus 1024 --tp 8 --pp 16 --zero 1 "
      "--sequence-parallel --global-batch 256 --seq 8192";
  const Json json = Json::parse(run(words_of(job + " --json")).standard_output);
  const Json& blocked = json["fastest_that_does_not_fit"];
  ASSERT_FALSE(blocked.is_null());
  EXPECT_EQ(blocked["missing_memory_bytes"].get<std::int64_t>(),
            blocked["plan"]["peak_memory_bytes"].get<std::int64_t>() -
                blocked["plan"]["memory_capacity_bytes"].get<std::int64_t>());
  EXPECT_LT(blocked["plan"]["step_time_ns"], json["step_time_ns"]);
  std::int64_t growth = 0;
  for (const Json& bytes : blocked["memory_change_bytes"]) growth += bytes.get<std::int64_t>();
  EXPECT_EQ(growth, blocked["plan"]["peak_memory_bytes"].get<std::int64_t>() -
                        json["peak_memory_bytes"].get<std::int64_t>());
  EXPECT_THAT(run(words_of(job)).standard_output,
              testing::ContainsRegex("Fastest change that does not fit: .* faster, lacks .* GiB of "
                                     "memory: needs .* of 79.1 GiB on pipeline rank [0-9]+"));
}

}  // namespace
}  // namespace meshwright
