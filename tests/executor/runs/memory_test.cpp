/// The memory that lower() predicts for a rank equals what its executor allocates: to the byte, by
/// class, at the peak. Reserved memory (kernel scratch) is excluded.
#include <gmock/gmock.h>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/executor/runs/tiny_training.hpp"

namespace meshwright {
namespace {

std::vector<NamedPlan> one_axis() {
  using S = Strategy&;
  return {
      {"one_rank", kGpt, [](S) {}},
      {"larger_micro_batches", kGpt, [](S s) { s.micro_batch = 2; }},
      {"bf16", kGpt, [](S s) { s.dtype = Dtype::kBf16; }},
      {"llama", kLlama, [](S) {}},
      {"llama_bf16", kLlama, [](S s) { s.dtype = Dtype::kBf16; }},
      {"recompute_full", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"recompute_selective", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kSelective; }},
      {"recompute_single_blocks", kGpt,
       [](S s) { s.layer_options = *layer_options_from_text("1:recompute=full"); }},
      {"shared_tokens", kGpt, [](S s) { share_tokens(s, 2, "1-2:tp=1"); }},
      {"shared_tokens_recompute", kLlama,
       [](S s) { share_tokens(s, 2, "1-2:tp=1+2:recompute=full"); }},
      {"recompute_two_blocks", kLlama,
       [](S s) { s.recompute = {.kind = RecomputeKind::kBlocks, .blocks = 2}; }},
      {"data_2", kGpt, [](S s) { s.degrees.data = 2; }},
      {"data_2_shares", kGpt, [](S s) { use_shares(s, "0:6+1:2"); }},
      {"data_2_shares_zb_v", kLlama,
       [](S s) { use_shares(s, "0:2+1:6"), use_pipeline(s, 2, "zb-v", 2); }},
      {"data_4_zero_1", kGpt, [](S s) { use_data(s, 4, 1); }},
      {"data_2_zero_1_bf16", kLlama, [](S s) { use_data(s, 2, 1), s.dtype = Dtype::kBf16; }},
      {"tensor_2", kGpt, [](S s) { s.degrees.tensor = 2; }},
      {"tensor_2_sequence", kGpt, [](S s) { use_sequence_parallel(s, 2); }},
      {"tensor_4_sequence", kGpt, [](S s) { use_sequence_parallel(s, 4); }},
      {"tensor_2_sequence_recompute", kGpt,
       [](S s) { use_sequence_parallel(s, 2), s.recompute.kind = RecomputeKind::kFull; }},
      {"llama_tensor_2", kLlama, [](S s) { s.degrees.tensor = 2; }},
      {"llama_tensor_2_sequence_bf16", kLlama,
       [](S s) { use_sequence_parallel(s, 2), s.dtype = Dtype::kBf16; }},
      {"context_2", kGpt, [](S s) { s.degrees.context = 2; }},
      {"llama_context_4", kLlama, [](S s) { s.degrees.context = 4; }},
  };
}

std::vector<NamedPlan> schedules() {
  using S = Strategy&;
  return {
      {"gpipe_4", kGpt, [](S s) { use_pipeline(s, 4, "gpipe"); }},
      {"1f1b_2", kGpt, [](S s) { use_pipeline(s, 2, "1f1b"); }},
      {"1f1b_4", kLlama, [](S s) { use_pipeline(s, 4, "1f1b"); }},
      {"interleaved_2", kGpt, [](S s) { use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"zb_h1_4", kGpt, [](S s) { use_pipeline(s, 4, "zb-h1"); }},
      {"zb_2p_4", kGpt, [](S s) { use_pipeline(s, 4, "zb-2p"); }},
      {"zb_v_2", kGpt, [](S s) { use_pipeline(s, 2, "zb-v", 2); }},
      {"dualpipev_2", kGpt, [](S s) { use_pipeline(s, 2, "dualpipev", 2); }},
      {"dualpipe_4_bf16", kLlama,
       [](S s) { use_pipeline(s, 4, "dualpipe"), s.dtype = Dtype::kBf16; }},
      {"chimera_4", kGpt, [](S s) { use_pipeline(s, 4, "chimera"); }},
      {"pipedream_4", kLlama, [](S s) { use_pipeline(s, 4, "pipedream"); }},
      {"pipedream_2_data_2_bf16", kLlama,
       [](S s) { use_pipeline(s, 2, "pipedream"), s.degrees.data = 2, s.dtype = Dtype::kBf16; }},
      {"pipedream_2bw_4_recompute", kLlama,
       [](S s) { use_pipeline(s, 4, "pipedream-2bw"), s.recompute.kind = RecomputeKind::kFull; }},
      {"1f1b_2_recompute", kGpt,
       [](S s) { use_pipeline(s, 2, "1f1b"), s.recompute.kind = RecomputeKind::kFull; }},
      {"zb_h1_2_recompute", kLlama,
       [](S s) { use_pipeline(s, 2, "zb-h1"), s.recompute.kind = RecomputeKind::kFull; }},
      {"zb_h1_2_tensor_2_sequence", kGpt,
       [](S s) { use_pipeline(s, 2, "zb-h1"), use_sequence_parallel(s, 2); }},
      {"zb_v_2_tensor_2_bf16", kLlama,
       [](S s) { use_pipeline(s, 2, "zb-v", 2), s.degrees.tensor = 2, s.dtype = Dtype::kBf16; }},
      {"1f1b_2_data_2_zero_1_tensor_2_sequence", kGpt,
       [](S s) { use_pipeline(s, 2, "1f1b"), use_sequence_parallel(s, 2), use_data(s, 2, 1); }},
      {"1f1b_2_data_2_tensor_2", kLlama,
       [](S s) { use_pipeline(s, 2, "1f1b"), s.degrees.tensor = 2, s.degrees.data = 2; }},
  };
}

constexpr std::int32_t kFewestWords = 48;  ///< smallest vocabulary of the models here

// Small vocabulary and narrow feed-forward layers, so that the peak is not in the loss.
const std::string kSlimGpt = with_values(kGpt, {{"n_inner", "8"}, {"vocab_size", "48"}});
const std::string kSlimGptWithDropout =
    with_values(kSlimGpt, {{"resid_pdrop", "0.1"}, {"attn_pdrop", "0.2"}, {"embd_pdrop", "0.1"}});
const std::string kSlimLlama =
    with_values(kLlama, {{"intermediate_size", "8"}, {"vocab_size", "48"}});
const std::string kManyKeyHeads = with_values(
    kSlimLlama,
    {{"num_hidden_layers", "2"}, {"num_attention_heads", "8"}, {"num_key_value_heads", "4"}});
const std::string kLatent = with_values(kDeepSeek, {{"num_hidden_layers", "4"},
                                                    {"intermediate_size", "16"},
                                                    {"moe_intermediate_size", "4"},
                                                    {"vocab_size", "48"}});
const std::string kSlimMixtral =
    with_values(kMixtral, {{"intermediate_size", "8"}, {"vocab_size", "48"}});
const std::string kSlimGptOss = with_values(
    kGptOss, {{"num_hidden_layers", "4"}, {"intermediate_size", "4"}, {"vocab_size", "48"}});

/// Norms of heads without weights, chunks, layers without positions, weighted inputs of experts.
const std::string kSlimLlama4 =
    R"({"model_type": "llama4_text", "hidden_size": 32, "num_hidden_layers": 4,
        "intermediate_size": 4, "intermediate_size_mlp": 8, "num_attention_heads": 4,
        "num_key_value_heads": 4, "head_dim": 8, "num_local_experts": 4, "num_experts_per_tok": 2,
        "no_rope_layer_interval": 2, "interleave_moe_layer_step": 2, "attention_chunk_size": 6,
        "floor_scale": 4, "vocab_size": 48, "max_position_embeddings": 16})";

std::vector<NamedPlan> dropout() {
  using S = Strategy&;
  return {
      {"dropout", kSlimGptWithDropout, [](S) {}},
      {"dropout_bf16", kSlimGptWithDropout, [](S s) { s.dtype = Dtype::kBf16; }},
      {"dropout_tensor_2", kSlimGptWithDropout, [](S s) { s.degrees.tensor = 2; }},
      {"dropout_tensor_2_sequence", kSlimGptWithDropout, [](S s) { use_sequence_parallel(s, 2); }},
      {"dropout_recompute", kSlimGptWithDropout,
       [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"dropout_selective_standard", kSlimGptWithDropout,
       [](S s) {
         s.recompute.kind = RecomputeKind::kSelective;
         s.attention = AttentionAlgorithm::kStandard;
       }},
      {"dropout_standard", kSlimGptWithDropout,
       [](S s) { s.attention = AttentionAlgorithm::kStandard; }},
      {"dropout_zb_h1_2", kSlimGptWithDropout, [](S s) { use_pipeline(s, 2, "zb-h1"); }},
      {"dropout_context_2", kSlimGptWithDropout, [](S s) { s.degrees.context = 2; }},
  };
}

constexpr ContextAlgorithm kRing = ContextAlgorithm::kRing;
constexpr ContextAlgorithm kHeads = ContextAlgorithm::kAllToAll;

std::vector<NamedPlan> context_ranks() {
  using S = Strategy&;
  return {
      {"ring_2", kSlimGpt, [](S s) { use_context(s, 2, kRing); }},
      {"ring_4_bf16", kSlimLlama, [](S s) { use_context(s, 4, kRing), s.dtype = Dtype::kBf16; }},
      {"ring_2_of_two_sequences", kSlimLlama,
       [](S s) { use_context(s, 2, kRing), s.micro_batch = 2; }},
      {"ring_2_recompute", kSlimGpt,
       [](S s) { use_context(s, 2, kRing), s.recompute.kind = RecomputeKind::kFull; }},
      {"ring_2_tensor_2_sequence", kSlimLlama,
       [](S s) { use_context(s, 2, kRing), use_sequence_parallel(s, 2); }},
      {"ring_2_zb_h1_2_bf16", kSlimLlama,
       [](S s) { use_context(s, 2, kRing), use_pipeline(s, 2, "zb-h1"), s.dtype = Dtype::kBf16; }},
      {"ring_4_dropout", kSlimGptWithDropout, [](S s) { use_context(s, 4, kRing); }},
      {"ring_2_sinks", kSlimGptOss, [](S s) { use_context(s, 2, kRing); }},
      {"heads_2", kSlimGpt, [](S s) { use_context(s, 2, kHeads); }},
      {"heads_4_bf16", kSlimGpt, [](S s) { use_context(s, 4, kHeads), s.dtype = Dtype::kBf16; }},
      {"heads_2_of_two_sequences", kManyKeyHeads,
       [](S s) { use_context(s, 2, kHeads), s.micro_batch = 2; }},
      {"heads_2_tensor_2", kManyKeyHeads,
       [](S s) { use_context(s, 2, kHeads), s.degrees.tensor = 2; }},
      {"heads_2_tensor_2_sequence_bf16", kManyKeyHeads,
       [](S s) { use_context(s, 2, kHeads), use_sequence_parallel(s, 2), s.dtype = Dtype::kBf16; }},
      {"heads_2_recompute", kSlimGpt,
       [](S s) { use_context(s, 2, kHeads), s.recompute.kind = RecomputeKind::kFull; }},
      {"heads_2_selective", kSlimGpt,
       [](S s) {
         use_context(s, 2, kHeads), s.recompute.kind = RecomputeKind::kSelective;
         s.attention = AttentionAlgorithm::kStandard;
       }},
      {"heads_2_zb_h1_2", kSlimGpt,
       [](S s) { use_context(s, 2, kHeads), use_pipeline(s, 2, "zb-h1"); }},
      {"heads_2_dropout", kSlimGptWithDropout, [](S s) { use_context(s, 2, kHeads); }},
  };
}

std::vector<NamedPlan> latent_attention() {
  using S = Strategy&;
  return {
      {"latent", kLatent, [](S) {}},
      {"latent_bf16", kLatent, [](S s) { s.dtype = Dtype::kBf16; }},
      {"latent_tensor_2", kLatent, [](S s) { s.degrees.tensor = 2; }},
      {"latent_tensor_2_sequence", kLatent, [](S s) { use_sequence_parallel(s, 2); }},
      {"latent_recompute", kLatent, [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"latent_zb_h1_2", kLatent, [](S s) { use_pipeline(s, 2, "zb-h1"); }},
      {"latent_context_2", kLatent, [](S s) { s.degrees.context = 2; }},
      {"latent_ring_2", kLatent, [](S s) { use_context(s, 2, kRing); }},
  };
}

/// With a capacity every expert gets a fixed number of rows, so the dispatched size is known.
void spread_experts(Strategy& s, int ranks, int tensor = 1) {
  s.degrees.expert = ranks, s.degrees.expert_tensor = tensor;
  s.model_parallelism.routing.capacity = 1.0;
}

std::vector<NamedPlan> experts() {
  using S = Strategy&;
  return {
      {"experts", kSlimMixtral, [](S) {}},
      {"experts_bf16_larger_micro_batches", kSlimMixtral,
       [](S s) { s.dtype = Dtype::kBf16, s.micro_batch = 2; }},
      {"experts_limited", kSlimMixtral, [](S s) { spread_experts(s, 1); }},
      {"experts_biased", kSlimGptOss, [](S) {}},
      {"experts_2", kSlimMixtral, [](S s) { s.degrees.data = 2, spread_experts(s, 2); }},
      {"experts_4_bf16", kSlimMixtral,
       [](S s) { s.degrees.data = 4, spread_experts(s, 4), s.dtype = Dtype::kBf16; }},
      {"experts_2_fp8", kSlimMixtral,
       [](S s) {
         s.degrees.data = 2, spread_experts(s, 2);
         s.model_parallelism.routing.fp8_dispatch = true;
       }},
      {"experts_2_tensor_2", kSlimMixtral, [](S s) { s.degrees.tensor = 2, spread_experts(s, 2); }},
      {"experts_2_tensor_2_sequence", kSlimMixtral,
       [](S s) { use_sequence_parallel(s, 2), spread_experts(s, 2); }},
      {"experts_cut", kSlimGptOss, [](S s) { s.degrees.tensor = 2, spread_experts(s, 1, 2); }},
      {"experts_cut_sequence_bf16", kSlimGptOss,
       [](S s) { use_sequence_parallel(s, 2), spread_experts(s, 1, 2), s.dtype = Dtype::kBf16; }},
      {"experts_2_cut_data_2_tensor_2", kSlimGptOss,
       [](S s) { s.degrees.tensor = 2, s.degrees.data = 2, spread_experts(s, 2, 2); }},
      {"experts_2_recompute", kSlimMixtral,
       [](S s) {
         s.degrees.data = 2, spread_experts(s, 2), s.recompute.kind = RecomputeKind::kFull;
       }},
      {"experts_2_zb_h1_2", kSlimMixtral,
       [](S s) { s.degrees.data = 2, spread_experts(s, 2), use_pipeline(s, 2, "zb-h1"); }},
      {"experts_shared_2_tensor_2_sequence", kLatent,
       [](S s) { use_sequence_parallel(s, 2), spread_experts(s, 2); }},
      {"experts_2_context_2", kSlimMixtral,
       [](S s) { s.degrees.context = 2, spread_experts(s, 2); }},
  };
}

std::vector<NamedPlan> weighted_inputs() {
  using S = Strategy&;
  return {
      {"llama4", kSlimLlama4, [](S) {}},
      {"llama4_bf16", kSlimLlama4, [](S s) { s.dtype = Dtype::kBf16; }},
      {"llama4_recompute", kSlimLlama4, [](S s) { s.recompute.kind = RecomputeKind::kFull; }},
      {"llama4_tensor_2", kSlimLlama4, [](S s) { s.degrees.tensor = 2, spread_experts(s, 2); }},
      {"llama4_tensor_2_sequence", kSlimLlama4,
       [](S s) { use_sequence_parallel(s, 2), spread_experts(s, 2); }},
      {"llama4_experts_2", kSlimLlama4, [](S s) { s.degrees.data = 2, spread_experts(s, 2); }},
      {"llama4_ring_2", kSlimLlama4, [](S s) { use_context(s, 2, kRing); }},
      {"llama4_heads_2", kSlimLlama4, [](S s) { use_context(s, 2, kHeads); }},
      {"llama4_zb_h1_2", kSlimLlama4, [](S s) { use_pipeline(s, 2, "zb-h1"); }},
      {"llama4_data_2_zero_3", kSlimLlama4, [](S s) { use_data(s, 2, 3); }},
  };
}

std::vector<NamedPlan> cut_parameters() {
  using S = Strategy&;
  return {
      {"data_4_zero_2", kSlimGpt, [](S s) { use_data(s, 4, 2); }},
      {"data_2_zero_2_bf16", kSlimLlama, [](S s) { use_data(s, 2, 2), s.dtype = Dtype::kBf16; }},
      {"data_2_zero_2_one_micro_batch", kSlimGpt,
       [](S s) { use_data(s, 2, 2), s.micro_batch = 4; }},
      {"data_2_zero_2_buckets", kSlimGpt,
       [](S s) {
         use_data(s, 2, 2);
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(60'000)};
       }},
      {"data_2_zero_2_gathered_late", kSlimGpt,
       [](S s) { use_data(s, 2, 2), s.data_parallelism.overlap_gather = true; }},
      {"data_4_zero_1_gathered_late", kSlimGpt,
       [](S s) {
         use_data(s, 4, 1), s.data_parallelism.overlap_gather = true;
         s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(60'000)};
       }},
      {"data_4_zero_3", kSlimGpt, [](S s) { use_data(s, 4, 3); }},
      {"data_2_zero_3_bf16", kSlimLlama, [](S s) { use_data(s, 2, 3), s.dtype = Dtype::kBf16; }},
      {"data_2_zero_3_without_prefetch", kSlimGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.prefetch = 0; }},
      {"data_2_zero_3_three_ahead", kSlimLlama,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.prefetch = 3; }},
      {"data_2_zero_3_kept_after_forward", kSlimGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.reshard_after_forward = false; }},
      {"data_4_zero_3_shards_of_2", kSlimGpt,
       [](S s) { use_data(s, 4, 3), s.data_parallelism.shard_ranks = 2; }},
      {"data_2_zero_3_ring", kSlimGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.kind = DataParallelKind::kRing; }},
      {"data_2_zero_3_recompute", kSlimLlama,
       [](S s) { use_data(s, 2, 3), s.recompute.kind = RecomputeKind::kFull; }},
      {"data_2_zero_3_tensor_2_sequence", kSlimGpt,
       [](S s) { use_data(s, 2, 3), use_sequence_parallel(s, 2); }},
      {"data_2_zero_3_offloaded", kSlimGpt,
       [](S s) { use_data(s, 2, 3), s.data_parallelism.offload_optimizer = true; }},
      {"1f1b_2_data_2_zero_2", kSlimGpt,
       [](S s) { use_data(s, 2, 2), use_pipeline(s, 2, "1f1b"); }},
      {"1f1b_2_data_2_zero_3", kSlimLlama,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "1f1b"); }},
      {"gpipe_2_data_2_zero_3", kSlimGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "gpipe"); }},
      {"zb_h1_2_data_2_zero_2", kSlimGpt,
       [](S s) { use_data(s, 2, 2), use_pipeline(s, 2, "zb-h1"); }},
      {"zb_h1_4_data_2_zero_3", kSlimGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 4, "zb-h1"); }},
      {"zb_v_2_data_2_zero_3", kSlimGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "zb-v", 2); }},
      {"interleaved_2_data_2_zero_3", kSlimGpt,
       [](S s) { use_data(s, 2, 3), use_pipeline(s, 2, "interleaved-1f1b", 2); }},
      {"experts_2_data_4_zero_2", kSlimMixtral,
       [](S s) { use_data(s, 4, 2), spread_experts(s, 2); }},
      {"experts_2_data_4_zero_3", kSlimMixtral,
       [](S s) { use_data(s, 4, 3), spread_experts(s, 2); }},
      {"experts_4_data_4_zero_3", kSlimMixtral,
       [](S s) { use_data(s, 4, 3), spread_experts(s, 4); }},
  };
}

std::vector<NamedPlan> cases() {
  std::vector<NamedPlan> all;
  for (const auto& more : {one_axis(), schedules(), dropout(), context_ranks(), latent_attention(),
                           experts(), weighted_inputs(), cut_parameters()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

class CountedMemory : public testing::TestWithParam<NamedPlan> {};

TEST_P(CountedMemory, EqualsThePrediction) {
  TinyJob job = tiny_job(GetParam().config, GetParam().applied_to(base()));
  for (std::int32_t& word : job.text.words) word %= kFewestWords;
  for (auto& [key, device] : job.cluster.devices) device.kernels = KernelLibrary::kOwn;
  constexpr int kTwoSteps = 2;
  job.graph = lower(job.plan, job.model, job.cluster,
                    {.ranks = RankSet::kAll, .steps = kTwoSteps, .programs = true});
  EXPECT_THAT(check_task_graph(job.graph), testing::IsEmpty());
  TrainingRequest request = job.request(kernel_table(Backend::kCpu));
  request.steps = kTwoSteps;
  request.keep_parameters = false;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  std::vector<MemoryAmounts> predicted = peak_memory_by_rank(job.graph);
  ASSERT_EQ(predicted.size(), run.peak_memory.size());
  for (std::size_t rank = 0; rank < predicted.size(); ++rank) {
    predicted[rank][MemoryClass::kReserved] = Bytes(0);
    for (int c = 0; c < kMemoryClassCount; ++c) {
      const auto what = static_cast<MemoryClass>(c);
      EXPECT_EQ(run.peak_memory[rank][what].value, predicted[rank][what].value)
          << name_of(what) << " of rank " << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, CountedMemory, testing::ValuesIn(cases()), plan_name);

}  // namespace
}  // namespace meshwright
