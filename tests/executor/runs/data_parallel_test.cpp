/// All kinds of data parallelism and sharding: losses of ten steps and all parameters equal those
/// of one rank, and a second run is bitwise equal.
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

constexpr int kManySteps = 10;
constexpr double kTolerance = 1e-5;

using S = Strategy&;

void buckets_of(S s, std::int64_t bytes) {
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(bytes)};
}

std::vector<NamedPlan> cut_state() {
  return {
      {"gpt_zero_2", kTinyGpt, [](S s) { use_data(s, 4, 2); }},
      {"gpt_zero_2_buckets", kTinyGpt, [](S s) { use_data(s, 4, 2), buckets_of(s, 16384); }},
      {"gpt_zero_2_pipeline_2", kTinyGpt, [](S s) { use_data(s, 2, 2), s.degrees.pipeline = 2; }},
      {"gpt_zero_3", kTinyGpt, [](S s) { use_data(s, 4, 3); }},
      {"gpt_zero_3_kept_after_forward", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.reshard_after_forward = false; }},
      {"gpt_zero_3_options_per_layer", kTinyGpt,
       [](S s) {
         use_data(s, 2, 3);
         s.layer_options = *layer_options_from_text("0:recompute=full+1:fsdp-reshard=no");
       }},
      {"gpt_zero_3_without_prefetch", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.prefetch = 0; }},
      {"gpt_zero_3_three_ahead", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.prefetch = 3; }},
      {"gpt_zero_3_tensor_2_sequence", kTinyGpt,
       [](S s) { use_data(s, 2, 3), use_sequence_parallel(s, 2); }},
      {"gpt_zero_3_pipeline_2", kTinyGpt, [](S s) { use_data(s, 2, 3), s.degrees.pipeline = 2; }},
      {"gpt_zero_3_pipeline_2_gpipe", kTinyGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "gpipe"); }},
      {"gpt_zero_3_interleaved", kTinyGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"gpt_zero_3_zb_h1", kTinyGpt, [](S s) { use_data(s, 2, 3), use_pipeline(s, 4, "zb-h1"); }},
      {"gpt_zero_2_zb_v", kTinyGpt, [](S s) { use_data(s, 2, 2), use_pipeline(s, 2, "zb-v", 2); }},
      {"gpt_zero_3_zb_v", kTinyGpt, [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "zb-v", 2); }},
      {"gpt_zero_3_context_2", kTinyGpt, [](S s) { use_data(s, 2, 3), s.degrees.context = 2; }},
      {"gpt_zero_3_recompute", kTinyGpt,
       [](S s) { use_data(s, 2, 3), s.recompute.kind = RecomputeKind::kFull; }},
      {"llama_zero_2", kTinyLlama, [](S s) { use_data(s, 2, 2); }},
      {"llama_zero_3_tensor_2", kTinyLlama, [](S s) { use_data(s, 2, 3), s.degrees.tensor = 2; }},
      {"llama_zero_3_dualpipev", kTinyLlama,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "dualpipev", 2); }},
      {"mixtral_zero_2_expert_2", kTinyMixtral,
       [](S s) { use_data(s, 4, 2), s.degrees.expert = 2; }},
      {"mixtral_zero_3_expert_2", kTinyMixtral,
       [](S s) { use_data(s, 4, 3), s.degrees.expert = 2; }},
      {"mixtral_zero_3_expert_4_without_replicas", kTinyMixtral,
       [](S s) { use_data(s, 4, 3), s.degrees.expert = 4; }},
      {"mixtral_zero_3_zb_h1", kTinyMixtral,
       [](S s) { use_data(s, 2, 3), s.degrees.expert = 2, use_pipeline(s, 2, "zb-h1"); }},
  };
}

std::vector<NamedPlan> gathers_and_shards() {
  return {
      {"gpt_zero_1_overlapped_gather", kTinyGpt,
       [](S s) {
         use_data(s, 4, 1), buckets_of(s, 5000), s.data_parallelism.overlap_gather = true;
       }},
      {"gpt_zero_2_overlapped_gather", kTinyGpt,
       [](S s) {
         use_data(s, 2, 2), s.degrees.pipeline = 2, s.data_parallelism.overlap_gather = true;
       }},
      {"mixtral_zero_1_overlapped_gather", kTinyMixtral,
       [](S s) {
         use_data(s, 4, 1), s.degrees.expert = 2, buckets_of(s, 9000);
         s.data_parallelism.overlap_gather = true;
       }},
      {"gpt_zero_1_shards_of_2", kTinyGpt,
       [](S s) { use_data(s, 4, 1), s.data_parallelism.shard_ranks = 2; }},
      {"gpt_zero_2_shards_of_2", kTinyGpt,
       [](S s) { use_data(s, 4, 2), s.data_parallelism.shard_ranks = 2; }},
      {"gpt_zero_3_shards_of_2", kTinyGpt,
       [](S s) { use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2; }},
      {"gpt_zero_3_shards_of_2_zb_v", kTinyGpt,
       [](S s) {
         use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2, use_pipeline(s, 2, "zb-v", 2);
         s.global_batch = 8;
       }},
      {"gpt_offloaded", kTinyGpt, [](S s) { s.data_parallelism.offload_optimizer = true; }},
      {"gpt_zero_0_offloaded_buckets", kTinyGpt,
       [](S s) {
         s.degrees.data = 2, buckets_of(s, 5000);
         s.data_parallelism.offload_optimizer = true;
       }},
      {"gpt_zero_1_offloaded", kTinyGpt,
       [](S s) { use_data(s, 2, 1), s.data_parallelism.offload_optimizer = true; }},
      {"llama_zero_2_offloaded_pipeline_2", kTinyLlama,
       [](S s) {
         use_data(s, 2, 2), s.degrees.pipeline = 2, s.data_parallelism.offload_optimizer = true;
       }},
      {"gpt_zero_3_offloaded_shards_of_2", kTinyGpt,
       [](S s) {
         use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2;
         s.data_parallelism.offload_optimizer = true;
       }},
      {"gpt_chimera_zero_1", kTinyGpt,
       [](S s) { use_data(s, 2, 1), use_pipeline(s, 2, "chimera"); }},
  };
}

std::vector<NamedPlan> explicit_rings() {
  return {
      {"gpt_ring", kTinyGpt,
       [](S s) { s.degrees.data = 4, s.data_parallelism.kind = DataParallelKind::kRing; }},
      {"gpt_ring_alternating_buckets", kTinyGpt,
       [](S s) {
         s.degrees.data = 4, s.degrees.tensor = 2, buckets_of(s, 5000);
         s.data_parallelism.kind = DataParallelKind::kRing;
         s.data_parallelism.ring_order = RingOrder::kAlternating;
       }},
      {"gpt_ring_zero_1", kTinyGpt,
       [](S s) { use_data(s, 4, 1), s.data_parallelism.kind = DataParallelKind::kRing; }},
      {"llama_ring_zero_2", kTinyLlama,
       [](S s) { use_data(s, 4, 2), s.data_parallelism.kind = DataParallelKind::kRing; }},
      {"gpt_ring_zero_3_shards_of_2", kTinyGpt,
       [](S s) {
         use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2;
         s.data_parallelism.kind = DataParallelKind::kRing;
       }},
      {"mixtral_ring_zero_3", kTinyMixtral,
       [](S s) {
         use_data(s, 4, 3), s.degrees.expert = 2, s.data_parallelism.kind = DataParallelKind::kRing;
       }},
  };
}

std::vector<NamedPlan> whole_models() {
  return {
      {"gpt_1_server", kTinyGpt, [](S s) { use_servers(s, 4, 1); }},
      {"gpt_3_servers", kTinyGpt, [](S s) { use_servers(s, 4, 3); }},
      {"llama_2_colocated_servers", kTinyLlama,
       [](S s) { use_servers(s, 2, 2), s.data_parallelism.colocated_servers = true; }},
      {"mixtral_2_servers", kTinyMixtral, [](S s) { use_servers(s, 4, 2); }},
      {"gpt_one_process", kTinyGpt,
       [](S s) { s.degrees.data = 4, s.data_parallelism.kind = DataParallelKind::kOneProcess; }},
      {"mixtral_one_process", kTinyMixtral,
       [](S s) { s.degrees.data = 2, s.data_parallelism.kind = DataParallelKind::kOneProcess; }},
  };
}

class DataParallel : public testing::TestWithParam<NamedPlan> {};

TEST_P(DataParallel, MatchesOneRank) {
  static std::map<std::string_view, TrainingRun> one_rank;
  const std::string_view config = GetParam().config;
  const Strategy strategy = GetParam().applied_to(tiny_strategy());
  const TinyJob job = tiny_job(config, strategy);
  EXPECT_THAT(check_runnable(job.plan, job.model), testing::IsEmpty());
  if (!one_rank.contains(config))
    one_rank[config] = train_tiny(config, tiny_strategy(), kManySteps);
  const TrainingRun many = train_tiny(config, strategy, kManySteps);
  expect_same_run(one_rank[config], many, kTolerance);
  expect_bitwise_same_run(many, train_tiny(config, strategy, kManySteps));
}

INSTANTIATE_TEST_SUITE_P(CutState, DataParallel, testing::ValuesIn(cut_state()), plan_name);
INSTANTIATE_TEST_SUITE_P(GathersAndShards, DataParallel, testing::ValuesIn(gathers_and_shards()),
                         plan_name);
INSTANTIATE_TEST_SUITE_P(WholeModels, DataParallel, testing::ValuesIn(whole_models()), plan_name);
INSTANTIATE_TEST_SUITE_P(ExplicitRings, DataParallel, testing::ValuesIn(explicit_rings()),
                         plan_name);

/// A weight of worker 0 is set to NaN before its only backward pass: the rank that computes the
/// norm of the gradients, server or worker, reports it before any update.
TEST(ParameterServers, RejectNonFiniteGradients) {
  for (const DataParallelKind kind :
       {DataParallelKind::kParameterServer, DataParallelKind::kAsyncParameterServer}) {
    Strategy strategy = tiny_strategy();
    use_servers(strategy, 2, 1, kind);
    strategy.micro_batch = 4;  // of 8 sequences
    const TinyJob job = tiny_job(kTinyGpt, strategy);
    TrainingRequest request = job.request();
    request.fault = fault_from_text("rank=0,task=B0,kind=nan", job.graph);
    const TrainingRun run = train(request);
    ASSERT_TRUE(run.failure.has_value());
    EXPECT_EQ(run.failure->cause, "gradients are not finite in step 0");
    EXPECT_TRUE(run.steps.empty());
  }
}

}  // namespace
}  // namespace meshwright
