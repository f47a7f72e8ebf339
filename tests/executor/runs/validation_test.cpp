/// The loss of held-out tokens: that of training steps on the same tokens, under every plan, and
/// without a trace in the training.
#include <gmock/gmock.h>

#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

constexpr double kTolerance = 1e-5;
constexpr int kStepsBefore = 2;

using S = Strategy&;

/// Tokens of the first steps, then held-out ones. Each part ends with the first token of the next.
struct Parts {
  TokenText all, trained, held_out;
};

Parts parts_of(const Strategy& s, int held_out_batches) {
  const std::int64_t per_step = s.global_batch * s.sequence_length;
  const std::int64_t trained = kStepsBefore * per_step, held_out = held_out_batches * per_step;
  Parts parts;
  for (std::int64_t i = 0; i <= trained + held_out; ++i)
    parts.all.words.push_back(static_cast<std::int32_t>((i * i * 7 + i) % 199));
  const auto begin = parts.all.words.begin();
  parts.trained.words.assign(begin, begin + trained + 1);
  parts.held_out.words.assign(begin + trained, parts.all.words.end());
  return parts;
}

TrainingRun run_with(const TinyJob& job, const TokenText& text, int steps,
                     const ValidationOptions& validation, float rate = 1e-2F) {
  return train({.plan = job.plan,
                .model = job.model,
                .graph = job.graph,
                .cost_model = *job.cost_model,
                .text = text,
                .kernels = kernel_table(Backend::kReference),
                .steps = steps,
                .options = {.learning_rate = rate},
                .validation = validation,
                .keep_parameters = true});
}

class ValidationUnder : public testing::TestWithParam<NamedPlan> {};

TEST_P(ValidationUnder, EqualsTheLossOfATrainingStepAndChangesNothing) {
  const Parts parts = parts_of(tiny_strategy(), 1);
  const TinyJob one_rank = tiny_job(GetParam().config, tiny_strategy());
  const TrainingRun oracle = run_with(one_rank, parts.all, kStepsBefore + 1, {});
  const TinyJob job = tiny_job(GetParam().config, GetParam().applied_to(tiny_strategy()));
  ASSERT_THAT(check_validation(job.plan.strategy), testing::IsEmpty());
  const TrainingRun run = run_with(job, parts.trained, kStepsBefore,
                                   {.text = &parts.held_out, .batches = 1, .every = 1});
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  const double expected = oracle.steps.back().loss;
  EXPECT_NEAR(run.steps.back().validation_loss.value(), expected, kTolerance * expected);
  const TrainingRun without = run_with(job, parts.trained, kStepsBefore, {});
  expect_bitwise_same_run(without, run);
  EXPECT_EQ(run.peak_memory, without.peak_memory);
}

std::vector<NamedPlan> plans() {
  return {
      {"one_rank", kTinyGpt, [](S) {}},
      {"data_2", kTinyGpt, [](S s) { s.degrees.data = 2; }},
      {"zero_1_overlapped_gather", kTinyGpt,
       [](S s) {
         use_data(s, 4, 1), s.data_parallelism.overlap_gather = true;
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(5000)};
       }},
      {"zero_2_overlapped_gather_pipeline_2", kTinyGpt,
       [](S s) {
         use_data(s, 2, 2), s.degrees.pipeline = 2, s.data_parallelism.overlap_gather = true;
       }},
      {"ring_zero_1", kTinyGpt,
       [](S s) { use_data(s, 4, 1), s.data_parallelism.kind = DataParallelKind::kRing; }},
      {"zero_3", kTinyGpt, [](S s) { use_data(s, 4, 3); }},
      {"zero_3_three_ahead", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.prefetch = 3; }},
      {"zero_3_kept_after_forward", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.reshard_after_forward = false; }},
      {"zero_3_ring_shards_of_2", kTinyGpt,
       [](S s) {
         use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2;
         s.data_parallelism.kind = DataParallelKind::kRing;
       }},
      {"zero_3_interleaved", kTinyGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"zero_3_dualpipev", kTinyLlama,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "dualpipev", 2); }},
      {"zero_3_experts", kTinyMixtral, [](S s) { use_data(s, 4, 3), s.degrees.expert = 2; }},
      {"zero_1_offloaded", kTinyGpt,
       [](S s) { use_data(s, 2, 1), s.data_parallelism.offload_optimizer = true; }},
      {"tensor_2_sequence", kTinyLlama, [](S s) { use_sequence_parallel(s, 2); }},
      {"context_2", kTinyLlama, [](S s) { s.degrees.context = 2; }},
      {"context_2_ring", kTinyLlama, [](S s) { use_context(s, 2, ContextAlgorithm::kRing); }},
      {"pipeline_4", kTinyGpt, [](S s) { use_pipeline(s, 4, "1f1b"); }},
      {"pipeline_2_zb_v", kTinyGpt, [](S s) { use_pipeline(s, 2, "zb-v", 2); }},
      {"pipeline_2_dualpipe", kTinyGpt, [](S s) { use_pipeline(s, 2, "dualpipe"); }},
      {"chimera_zero_1", kTinyGpt, [](S s) { use_data(s, 2, 1), use_pipeline(s, 2, "chimera"); }},
      {"recompute", kTinyLlama, [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"experts_2_tensor_2", kTinyMixtral,
       [](S s) { s.degrees.data = 2, s.degrees.expert = 2, use_sequence_parallel(s, 2); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Plans, ValidationUnder, testing::ValuesIn(plans()), plan_name);

/// With a learning rate of 0 the parameters stay, so that two training steps without dropout
/// compute the losses of both batches.
TEST(Validation, IsTheMeanOverAllBatchesWithoutDropout) {
  const std::string dropping =
      with_values(kTinyGpt, {{"resid_pdrop", "0.3"}, {"attn_pdrop", "0.3"}, {"embd_pdrop", "0.3"}});
  const Parts parts = parts_of(tiny_strategy(), 2);
  const TrainingRun oracle =
      run_with(tiny_job(kTinyGpt, tiny_strategy()), parts.held_out, 2, {}, 0);
  const double expected = (oracle.steps[0].loss + oracle.steps[1].loss) / 2;
  const TrainingRun run = run_with(tiny_job(dropping, tiny_strategy()), parts.trained, 1,
                                   {.text = &parts.held_out, .batches = 2}, 0);
  EXPECT_NEAR(run.steps.back().validation_loss.value(), expected, kTolerance * expected);
}

TEST(Validation, FollowsEveryFewStepsAndTheLast) {
  const Parts parts = parts_of(tiny_strategy(), 1);
  const TrainingRun run = run_with(tiny_job(kTinyGpt, tiny_strategy()), parts.all, 5,
                                   {.text = &parts.held_out, .batches = 1, .every = 2});
  std::vector<bool> has_loss;
  for (const MeasuredStep& step : run.steps) has_loss.push_back(step.validation_loss.has_value());
  EXPECT_THAT(has_loss, testing::ElementsAre(false, true, false, true, true));
}

TEST(Validation, IsRefusedWhereAStepHasNoForwardPassOfItsOwn) {
  Strategy servers = tiny_strategy();
  use_servers(servers, 2, 1);
  Strategy flushless = tiny_strategy();
  use_pipeline(flushless, 2, "pipedream");
  for (const Strategy& strategy : {servers, flushless})
    EXPECT_THAT(check_validation(strategy), testing::SizeIs(1));
}

}  // namespace
}  // namespace meshwright
