/// The same results under every plan: losses and parameters after some steps equal those of one
/// rank.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/executor/runs/expect_same.hpp"

namespace meshwright {
namespace {

constexpr int kManySteps = 10;

std::vector<NamedPlan> cases() {
  using S = Strategy&;
  return {
      {"gpt_data_2", kGpt, [](S s) { s.degrees.data = 2; }},
      {"gpt_data_4_zero_1", kGpt, [](S s) { use_data(s, 4, 1); }},
      {"gpt_tensor_2", kGpt, [](S s) { s.degrees.tensor = 2; }},
      {"gpt_tensor_2_sequence", kGpt, [](S s) { use_sequence_parallel(s, 2); }},
      {"gpt_context_2", kGpt, [](S s) { s.degrees.context = 2; }},
      {"gpt_pipeline_2", kGpt, [](S s) { s.degrees.pipeline = 2; }},
      {"gpt_pipeline_4_gpipe", kGpt, [](S s) { use_pipeline(s, 4, "gpipe"); }},
      {"gpt_pipeline_2_interleaved", kGpt, [](S s) { use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"gpt_pipeline_4_zb_h1", kGpt, [](S s) { use_pipeline(s, 4, "zb-h1"); }},
      {"gpt_pipeline_2_zb_v", kGpt, [](S s) { use_pipeline(s, 2, "zb-v", 2); }},
      {"gpt_pipeline_4_chimera", kGpt, [](S s) { use_pipeline(s, 4, "chimera"); }},
      {"gpt_pipeline_2_dualpipev", kGpt, [](S s) { use_pipeline(s, 2, "dualpipev", 2); }},
      {"gpt_pipeline_4_zb_2p", kGpt, [](S s) { use_pipeline(s, 4, "zb-2p"); }},
      {"gpt_data_2_buckets", kGpt,
       [](S s) {
         s.degrees.data = 2;
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(8192)};
       }},
      {"gpt_data_2_pipeline_2_zero_1_buckets", kGpt,
       [](S s) {
         use_data(s, 2, 1), s.degrees.pipeline = 2;
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(8192)};
       }},
      {"gpt_recompute_full", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"gpt_all", kGpt,
       [](S s) { s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.tensor = 2; }},
      {"gpt_all_pipeline_before_data", kGpt,
       [](S s) {
         s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.tensor = 2;
         s.model_parallelism.order = *rank_order_from_text("tp-cp-ep-pp-dp");
       }},
      {"gpt_data_2_shares", kGpt, [](S s) { use_shares(s, "0:6+1:2"); }},
      {"gpt_data_3_shares_buckets", kGpt,
       [](S s) {
         use_shares(s, "0:5+1:1+2:2");
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(8192)};
       }},
      {"gpt_data_2_shares_zero_1_pipeline_2_zb_h1", kGpt,
       [](S s) { use_shares(s, "0:2+1:6"), s.zero = 1, use_pipeline(s, 2, "zb-h1"); }},
      {"gpt_data_2_shares_interleaved", kGpt,
       [](S s) { use_shares(s, "0:6+1:2"), use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"llama_data_2_shares_tensor_2_sequence", kLlama,
       [](S s) { use_shares(s, "0:3+1:1"), use_sequence_parallel(s, 2), s.micro_batch = 2; }},
      {"llama_tensor_2", kLlama, [](S s) { s.degrees.tensor = 2; }},
      {"llama_tensor_2_sequence", kLlama, [](S s) { use_sequence_parallel(s, 2); }},
      {"llama_zb_v_tensor_2_sequence", kLlama,
       [](S s) { use_pipeline(s, 2, "zb-v", 2), use_sequence_parallel(s, 2); }},
      {"gpt_tensor_2_shares_tokens", kGpt, [](S s) { share_tokens(s, 2, "0-3:tp=1"); }},
      {"gpt_tensor_2_shares_tokens_of_one", kGpt, [](S s) { share_tokens(s, 2, "2:tp=1"); }},
      {"gpt_tensor_2_shares_tokens_pipeline_2_zb_h1", kGpt,
       [](S s) { share_tokens(s, 2, "0-2:tp=1"), use_pipeline(s, 2, "zb-h1"); }},
      {"gpt_tensor_2_shares_tokens_recompute", kGpt,
       [](S s) { share_tokens(s, 2, "1-2:tp=1+2-3:recompute=full"); }},
      {"gpt_tensor_2_shares_tokens_standard", kGpt,
       [](S s) {
         share_tokens(s, 2, "1-2:tp=1+1:recompute=selective");
         s.attention = AttentionAlgorithm::kStandard;
       }},
      {"gpt_tensor_2_shares_tokens_data_2_zero_3", kGpt,
       [](S s) { share_tokens(s, 2, "1-2:tp=1"), use_data(s, 2, 3); }},
      {"gpt_tensor_4_shares_tokens_of_two_sequences", kGpt,
       [](S s) { share_tokens(s, 4, "1-3:tp=1"), s.micro_batch = 2; }},
      {"gpt_tensor_2_shares_tokens_of_four_sequences", kGpt,
       [](S s) { share_tokens(s, 2, "1-3:tp=1"), s.micro_batch = 4; }},
      {"llama_tensor_2_shares_tokens_of_two_sequences", kLlama,
       [](S s) {
         share_tokens(s, 2, "1-2:tp=1");
         s.micro_batch = 2;
         s.attention = AttentionAlgorithm::kStandard;
       }},
      {"llama_tensor_2_shares_tokens", kLlama, [](S s) { share_tokens(s, 2, "1-2:tp=1"); }},
      {"llama_tensor_2_shares_tokens_data_2_zero_1", kLlama,
       [](S s) { share_tokens(s, 2, "1:tp=1+3:tp=1"), use_data(s, 2, 1); }},
      {"llama_tensor_2_shares_tokens_overlap", kLlama,
       [](S s) {
         share_tokens(s, 2, "1:tp=1+3:tp=1");
         s.model_parallelism.tensor_overlap = true;
       }},
      {"llama_context_4", kLlama, [](S s) { s.degrees.context = 4; }},
      {"mixtral_expert_2", kMixtral, [](S s) { s.degrees.data = 2, s.degrees.expert = 2; }},
      {"mixtral_expert_4_sequence", kMixtral,
       [](S s) { s.degrees.data = 2, use_sequence_parallel(s, 2), s.degrees.expert = 4; }},
      {"mixtral_expert_4_tensor_2", kMixtral,
       [](S s) { s.degrees.data = 2, s.degrees.tensor = 2, s.degrees.expert = 4; }},
  };
}

class SameMathematics : public testing::TestWithParam<NamedPlan> {};

TEST_P(SameMathematics, MatchesOneRank) {
  static std::map<std::string_view, TrainingRun> one_rank;
  const std::string_view config = GetParam().config;
  if (!one_rank.contains(config)) {
    one_rank[config] = run_plan(config, base(), {.steps = kManySteps});
    ASSERT_FALSE(one_rank[config].failure.has_value()) << one_rank[config].failure->cause;
  }
  expect_same_run(one_rank[config],
                  run_plan(config, GetParam().applied_to(base()), {.steps = kManySteps}));
}

INSTANTIATE_TEST_SUITE_P(Plans, SameMathematics, testing::ValuesIn(cases()), plan_name);

// Each of two ranks has the tokens of a sequence and a half.
TEST(SharedTokens, CrossTheEndsOfSequences) {
  Strategy one = base(), two = base();
  one.global_batch = two.global_batch = 6;
  share_tokens(two, 2, "0-2:tp=1");
  two.micro_batch = 3;
  const TrainingRun expected = run_plan(kLlama, one, {.steps = kManySteps});
  ASSERT_FALSE(expected.failure.has_value());
  expect_same_run(expected, run_plan(kLlama, two, {.steps = kManySteps}));
}

// ---- the zoo ----

/// Schedules with a flush after every step; the others are in without_flush_test.cpp. An output
/// layer split over all devices cannot be lowered.
std::vector<std::string> schedules_with_flush() {
  std::vector<std::string> names;
  for (const ScheduleRule& rule : schedule_rules())
    if (rule.updates == UpdateTime::kAfterFlush && rule.output_barriers == 0)
      names.emplace_back(rule.name);
  return names;
}

/// Four layers on four devices, or in two chunks on each of two devices, as the schedule allows.
std::optional<Strategy> over_four_stages(const std::string& schedule) {
  for (const int devices : {4, 2}) {
    Strategy s = base();
    s.schedule = schedule;
    s.degrees.pipeline = devices;
    s.degrees.chunks = 4 / devices;
    const TinyJob plain = tiny_job(kGpt, base());
    const Plan plan{.strategy = s, .blocks_per_stage = {1, 1, 1, 1}};
    if (check_plan(plan, plain.model, plain.cluster).empty()) return s;
  }
  return std::nullopt;
}

class EverySchedule : public testing::TestWithParam<std::string> {};

TEST_P(EverySchedule, MatchesOneRank) {
  static const TrainingRun one_rank = run_plan(kGpt, base(), {.steps = kManySteps});
  const std::optional<Strategy> strategy = over_four_stages(GetParam());
  ASSERT_TRUE(strategy.has_value()) << "neither 4 devices nor 2 with two chunks are allowed";
  expect_same_run(one_rank, run_plan(kGpt, *strategy, {.steps = kManySteps}));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EverySchedule, testing::ValuesIn(schedules_with_flush()),
                         [](const auto& tried) {
                           std::string name = tried.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Training, LowersTheLoss) {
  const TrainingRun run = run_plan(kGpt, base());
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  // A vocabulary of 200: the initial loss is about ln 200 = 5.3.
  EXPECT_NEAR(run.steps.front().loss, std::log(200.0), 0.3);
  EXPECT_LT(run.steps.back().loss, run.steps.front().loss);
}

TEST(Training, IsBitwiseReproducible) {
  Strategy strategy = base();
  strategy.degrees.data = 2;
  strategy.degrees.tensor = 2;
  strategy.degrees.pipeline = 2;
  const TrainingRun first = run_plan(kLlama, strategy), second = run_plan(kLlama, strategy);
  expect_bitwise_same_run(first, second);
}

// The two holders of a tied table add up its gradients of four ranks in the same order, so that it
// does not matter which of them is read.
TEST(Training, KeepsTiedTablesEqual) {
  Strategy strategy = base();
  use_data(strategy, 4, 1);
  strategy.degrees.pipeline = 2;
  const TrainingRun first = run_plan(kGpt, strategy);
  for (int again = 0; again < 3; ++again) expect_bitwise_same_run(first, run_plan(kGpt, strategy));
}

/// bf16 has 8 bits of significand: another summation order changes a logit by about 2^-9, and the
/// mean loss of 128 tokens by less.
TEST(Training, AgreesWithinBf16Precision) {
  Strategy one = base();
  one.dtype = Dtype::kBf16;
  Strategy cut = one;
  cut.degrees.tensor = 2;
  cut.degrees.data = 2;
  cut.zero = 1;
  const TrainingRun alone = run_plan(kGpt, one), many = run_plan(kGpt, cut);
  ASSERT_FALSE(many.failure.has_value()) << many.failure->cause;
  for (std::size_t i = 0; i < alone.steps.size(); ++i)
    EXPECT_NEAR(many.steps[i].loss / alone.steps[i].loss, 1, std::pow(2.0, -9));
}

TEST(Training, ReportsANanLoss) {
  RunOptions options;
  options.training.learning_rate = 1e30F;
  const TrainingRun run = run_plan(kGpt, base(), options);
  ASSERT_TRUE(run.failure.has_value());
  EXPECT_THAT(run.failure->cause, testing::HasSubstr("is not finite in step 1"));
}

/// A cost model in which only waits for other ranks take time.
class OnlyWaits final : public CostModel {
 public:
  Seconds time_of(const Kernel&) const override { return {}; }
  Seconds time_of(const Collective&) const override { return {}; }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  Seconds wait_of(int ranks, Seconds) const override { return Seconds(ranks > 1 ? 5e-3 : 0); }
  std::string provenance() const override { return "test"; }
};

// Under the virtual clock ranks wait as they really do; the replay clock waits as predicted.
TEST(Training, ReplaysWaitsInsidePasses) {
  Strategy strategy = base();
  strategy.degrees.tensor = 2;
  strategy.global_batch = 2;
  TinyJob job = tiny_job(kGpt, strategy);
  job.cost_model = std::make_unique<OnlyWaits>();
  TrainingRequest request = job.request();
  request.clock = TimelineClock::kReplay;
  request.steps = 1;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  const Ticks predicted =
      makespan(simulate(job.graph, price_works(job.graph.parts, job.graph.works, *job.cost_model)));
  EXPECT_GT(to_seconds(predicted).value, 16 * 5e-3);  // four meetings of each block in each pass
  const std::vector<Ticks>& ends = run.steps.front().times.end;
  EXPECT_GE(*std::max_element(ends.begin(), ends.end()), predicted);
}

/// Under the virtual clock tasks start and end by the rules of the simulator: sequentially on each
/// stream of a rank, receives after their sends.
TEST(Training, MeasuresAValidTimeline) {
  Strategy strategy = base();
  strategy.degrees.pipeline = 2;
  const TinyJob job = tiny_job(kGpt, strategy);
  for (const TimelineClock clock :
       {TimelineClock::kVirtual, TimelineClock::kReplay, TimelineClock::kWall}) {
    const TrainingRun run = run_plan(kGpt, strategy, {.clock = clock});
    ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
    for (const MeasuredStep& step : run.steps)
      EXPECT_THAT(check_timeline(timeline_of(job.graph, step.times)), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace meshwright
