/// All kinds of data parallelism and sharding: losses of ten steps and all parameters equal those
/// of one rank, and a second run is bitwise equal.
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

constexpr int kManySteps = 10;
constexpr double kTolerance = 1e-5;

struct Case {
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
  std::string name;
  std::string_view config;
  Strategy strategy;
};

Case named(std::string name, std::string_view config, void (*change)(Strategy&)) {
  Case made{std::move(name), config, tiny_strategy()};
  change(made.strategy);
  return made;
}

using S = Strategy&;

void buckets_of(S s, std::int64_t bytes) {
  s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(bytes)};
}

std::vector<Case> cut_state() {
  return {
      named("gpt_zero_2", kTinyGpt, [](S s) { s.degrees.data = 4, s.zero = 2; }),
      named("gpt_zero_2_buckets", kTinyGpt,
            [](S s) { s.degrees.data = 4, s.zero = 2, buckets_of(s, 16384); }),
      named("gpt_zero_2_pipeline_2", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 2; }),
      named("gpt_zero_3", kTinyGpt, [](S s) { s.degrees.data = 4, s.zero = 3; }),
      named("gpt_zero_3_kept_after_forward", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.zero = 3;
              s.data_parallelism.reshard_after_forward = false;
            }),
      named("gpt_zero_3_without_prefetch", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.zero = 3, s.data_parallelism.prefetch = 0; }),
      named("gpt_zero_3_three_ahead", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.zero = 3, s.data_parallelism.prefetch = 3; }),
      named("gpt_zero_3_tensor_2_sequence", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.tensor = 2, s.sequence_parallel = true, s.zero = 3;
            }),
      named("gpt_zero_3_pipeline_2", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 3; }),
      named("gpt_zero_3_pipeline_2_gpipe", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 3, s.schedule = "gpipe";
            }),
      named("gpt_zero_3_interleaved", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.chunks = 2, s.zero = 3;
              s.schedule = "interleaved-1f1b";
            }),
      named("gpt_zero_3_zb_h1", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 4, s.zero = 3, s.schedule = "zb-h1";
            }),
      named("gpt_zero_2_zb_v", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.chunks = 2, s.zero = 2;
              s.schedule = "zb-v";
            }),
      named("gpt_zero_3_zb_v", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.chunks = 2, s.zero = 3;
              s.schedule = "zb-v";
            }),
      named("gpt_zero_3_context_2", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.degrees.context = 2, s.zero = 3; }),
      named("gpt_zero_3_recompute", kTinyGpt,
            [](S s) { s.degrees.data = 2, s.zero = 3, s.recompute.kind = RecomputeKind::kFull; }),
      named("llama_zero_2", kTinyLlama, [](S s) { s.degrees.data = 2, s.zero = 2; }),
      named("llama_zero_3_tensor_2", kTinyLlama,
            [](S s) { s.degrees.data = 2, s.degrees.tensor = 2, s.zero = 3; }),
      named("llama_zero_3_dualpipev", kTinyLlama,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.degrees.chunks = 2, s.zero = 3;
              s.schedule = "dualpipev";
            }),
      named("mixtral_zero_2_expert_2", kTinyMixtral,
            [](S s) { s.degrees.data = 4, s.degrees.expert = 2, s.zero = 2; }),
      named("mixtral_zero_3_expert_2", kTinyMixtral,
            [](S s) { s.degrees.data = 4, s.degrees.expert = 2, s.zero = 3; }),
      named("mixtral_zero_3_expert_4_without_replicas", kTinyMixtral,
            [](S s) { s.degrees.data = 4, s.degrees.expert = 4, s.zero = 3; }),
      named("mixtral_zero_3_zb_h1", kTinyMixtral,
            [](S s) {
              s.degrees.data = 2, s.degrees.expert = 2, s.degrees.pipeline = 2, s.zero = 3;
              s.schedule = "zb-h1";
            }),
  };
}

std::vector<Case> gathers_and_shards() {
  return {
      named("gpt_zero_1_overlapped_gather", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.zero = 1, buckets_of(s, 5000);
              s.data_parallelism.overlap_gather = true;
            }),
      named("gpt_zero_2_overlapped_gather", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 2;
              s.data_parallelism.overlap_gather = true;
            }),
      named("mixtral_zero_1_overlapped_gather", kTinyMixtral,
            [](S s) {
              s.degrees.data = 4, s.degrees.expert = 2, s.zero = 1, buckets_of(s, 9000);
              s.data_parallelism.overlap_gather = true;
            }),
      named("gpt_zero_1_shards_of_2", kTinyGpt,
            [](S s) { s.degrees.data = 4, s.zero = 1, s.data_parallelism.shard_ranks = 2; }),
      named("gpt_zero_2_shards_of_2", kTinyGpt,
            [](S s) { s.degrees.data = 4, s.zero = 2, s.data_parallelism.shard_ranks = 2; }),
      named("gpt_zero_3_shards_of_2", kTinyGpt,
            [](S s) { s.degrees.data = 4, s.zero = 3, s.data_parallelism.shard_ranks = 2; }),
      named("gpt_zero_3_shards_of_2_zb_v", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.zero = 3, s.data_parallelism.shard_ranks = 2;
              s.degrees.pipeline = 2, s.degrees.chunks = 2, s.schedule = "zb-v";
              s.global_batch = 8;
            }),
      named("gpt_offloaded", kTinyGpt, [](S s) { s.data_parallelism.offload_optimizer = true; }),
      named("gpt_zero_0_offloaded_buckets", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, buckets_of(s, 5000);
              s.data_parallelism.offload_optimizer = true;
            }),
      named(
          "gpt_zero_1_offloaded", kTinyGpt,
          [](S s) { s.degrees.data = 2, s.zero = 1, s.data_parallelism.offload_optimizer = true; }),
      named("llama_zero_2_offloaded_pipeline_2", kTinyLlama,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 2;
              s.data_parallelism.offload_optimizer = true;
            }),
      named("gpt_zero_3_offloaded_shards_of_2", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.zero = 3, s.data_parallelism.shard_ranks = 2;
              s.data_parallelism.offload_optimizer = true;
            }),
      named("gpt_chimera_zero_1", kTinyGpt,
            [](S s) {
              s.degrees.data = 2, s.degrees.pipeline = 2, s.zero = 1, s.schedule = "chimera";
            }),
  };
}

std::vector<Case> explicit_rings() {
  return {
      named("gpt_ring", kTinyGpt,
            [](S s) { s.degrees.data = 4, s.data_parallelism.kind = DataParallelKind::kRing; }),
      named("gpt_ring_alternating_buckets", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.degrees.tensor = 2, buckets_of(s, 5000);
              s.data_parallelism.kind = DataParallelKind::kRing;
              s.data_parallelism.ring_order = RingOrder::kAlternating;
            }),
      named("gpt_ring_zero_1", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.zero = 1, s.data_parallelism.kind = DataParallelKind::kRing;
            }),
      named("llama_ring_zero_2", kTinyLlama,
            [](S s) {
              s.degrees.data = 4, s.zero = 2, s.data_parallelism.kind = DataParallelKind::kRing;
            }),
      named("gpt_ring_zero_3_shards_of_2", kTinyGpt,
            [](S s) {
              s.degrees.data = 4, s.zero = 3, s.data_parallelism.shard_ranks = 2;
              s.data_parallelism.kind = DataParallelKind::kRing;
            }),
      named("mixtral_ring_zero_3", kTinyMixtral,
            [](S s) {
              s.degrees.data = 4, s.degrees.expert = 2, s.zero = 3;
              s.data_parallelism.kind = DataParallelKind::kRing;
            }),
  };
}

void with_servers(S s, int workers, int servers, bool colocated) {
  s.degrees.data = workers;
  s.data_parallelism.kind = DataParallelKind::kParameterServer;
  s.data_parallelism.servers = servers;
  s.data_parallelism.colocated_servers = colocated;
}

std::vector<Case> whole_models() {
  return {
      named("gpt_1_server", kTinyGpt, [](S s) { with_servers(s, 4, 1, false); }),
      named("gpt_3_servers", kTinyGpt, [](S s) { with_servers(s, 4, 3, false); }),
      named("llama_2_colocated_servers", kTinyLlama, [](S s) { with_servers(s, 2, 2, true); }),
      named("mixtral_2_servers", kTinyMixtral, [](S s) { with_servers(s, 4, 2, false); }),
      named(
          "gpt_one_process", kTinyGpt,
          [](S s) { s.degrees.data = 4, s.data_parallelism.kind = DataParallelKind::kOneProcess; }),
      named(
          "mixtral_one_process", kTinyMixtral,
          [](S s) { s.degrees.data = 2, s.data_parallelism.kind = DataParallelKind::kOneProcess; }),
  };
}

class DataParallel : public testing::TestWithParam<Case> {};

TEST_P(DataParallel, MatchesOneRank) {
  static std::map<std::string_view, TrainingRun> one_rank;
  const Case& c = GetParam();
  const TinyJob job = tiny_job(c.config, c.strategy);
  EXPECT_THAT(check_runnable(job.plan, job.model), testing::IsEmpty());
  if (!one_rank.contains(c.config))
    one_rank[c.config] = train_tiny(c.config, tiny_strategy(), kManySteps);
  const TrainingRun many = train_tiny(c.config, c.strategy, kManySteps);
  expect_same_run(one_rank[c.config], many, kTolerance);
  expect_bitwise_same_run(many, train_tiny(c.config, c.strategy, kManySteps));
}

const auto kName = [](const auto& tried) { return tried.param.name; };
INSTANTIATE_TEST_SUITE_P(CutState, DataParallel, testing::ValuesIn(cut_state()), kName);
INSTANTIATE_TEST_SUITE_P(GathersAndShards, DataParallel, testing::ValuesIn(gathers_and_shards()),
                         kName);
INSTANTIATE_TEST_SUITE_P(WholeModels, DataParallel, testing::ValuesIn(whole_models()), kName);
INSTANTIATE_TEST_SUITE_P(ExplicitRings, DataParallel, testing::ValuesIn(explicit_rings()), kName);

/// A weight of worker 0 is set to NaN before its only backward pass: the rank that computes the
/// norm of the gradients, server or worker, reports it before any update.
TEST(ParameterServers, RejectNonFiniteGradients) {
  for (const DataParallelKind kind :
       {DataParallelKind::kParameterServer, DataParallelKind::kAsyncParameterServer}) {
    Strategy strategy = tiny_strategy();
    with_servers(strategy, 2, 1, false);
    strategy.data_parallelism.kind = kind;
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
