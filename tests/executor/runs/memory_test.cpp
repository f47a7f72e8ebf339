/// The memory that lower() predicts for a rank equals what its executor allocates: to the byte, by
/// class, at the peak. Reserved memory (kernel scratch) is excluded.
#include <gmock/gmock.h>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/executor/runs/tiny_training.hpp"

namespace meshwright {
namespace {

struct Case {
  friend void PrintTo(const Case& tried, std::ostream* out) { *out << tried.name; }
  std::string name;
  std::string_view config;
  Strategy strategy;
};

Case named(std::string name, std::string_view config, void (*change)(Strategy&)) {
  Case made{std::move(name), config, base()};
  change(made.strategy);
  return made;
}

void pipeline(Strategy& s, int stages, std::string_view schedule, int chunks = 1) {
  s.degrees.pipeline = stages, s.degrees.chunks = chunks, s.schedule = schedule;
}
void cut_tensors(Strategy& s, bool tokens_too) {
  s.degrees.tensor = 2, s.sequence_parallel = tokens_too;
}

std::vector<Case> one_axis() {
  using S = Strategy&;
  return {
      named("one_rank", kGpt, [](S) {}),
      named("larger_micro_batches", kGpt, [](S s) { s.micro_batch = 2; }),
      named("bf16", kGpt, [](S s) { s.dtype = Dtype::kBf16; }),
      named("llama", kLlama, [](S) {}),
      named("llama_bf16", kLlama, [](S s) { s.dtype = Dtype::kBf16; }),
      named("recompute_full", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kFull; }),
      named("recompute_selective", kGpt, [](S s) { s.recompute.kind = RecomputeKind::kSelective; }),
      named("recompute_two_blocks", kLlama,
            [](S s) { s.recompute = {.kind = RecomputeKind::kBlocks, .blocks = 2}; }),
      named("data_2", kGpt, [](S s) { s.degrees.data = 2; }),
      named("data_4_zero_1", kGpt, [](S s) { s.degrees.data = 4, s.zero = 1; }),
      named("data_2_zero_1_bf16", kLlama,
            [](S s) { s.degrees.data = 2, s.zero = 1, s.dtype = Dtype::kBf16; }),
      named("tensor_2", kGpt, [](S s) { cut_tensors(s, false); }),
      named("tensor_2_sequence", kGpt, [](S s) { cut_tensors(s, true); }),
      named("tensor_4_sequence", kGpt,
            [](S s) { s.degrees.tensor = 4, s.sequence_parallel = true; }),
      named("tensor_2_sequence_recompute", kGpt,
            [](S s) { cut_tensors(s, true), s.recompute.kind = RecomputeKind::kFull; }),
      named("llama_tensor_2", kLlama, [](S s) { cut_tensors(s, false); }),
      named("llama_tensor_2_sequence_bf16", kLlama,
            [](S s) { cut_tensors(s, true), s.dtype = Dtype::kBf16; }),
      named("context_2", kGpt, [](S s) { s.degrees.context = 2; }),
      named("llama_context_4", kLlama, [](S s) { s.degrees.context = 4; }),
  };
}

std::vector<Case> schedules() {
  using S = Strategy&;
  return {
      named("gpipe_4", kGpt, [](S s) { pipeline(s, 4, "gpipe"); }),
      named("1f1b_2", kGpt, [](S s) { pipeline(s, 2, "1f1b"); }),
      named("1f1b_4", kLlama, [](S s) { pipeline(s, 4, "1f1b"); }),
      named("interleaved_2", kGpt, [](S s) { pipeline(s, 2, "interleaved-1f1b", 2); }),
      named("zb_h1_4", kGpt, [](S s) { pipeline(s, 4, "zb-h1"); }),
      named("zb_2p_4", kGpt, [](S s) { pipeline(s, 4, "zb-2p"); }),
      named("zb_v_2", kGpt, [](S s) { pipeline(s, 2, "zb-v", 2); }),
      named("dualpipev_2", kGpt, [](S s) { pipeline(s, 2, "dualpipev", 2); }),
      named("dualpipe_4_bf16", kLlama,
            [](S s) { pipeline(s, 4, "dualpipe"), s.dtype = Dtype::kBf16; }),
      named("chimera_4", kGpt, [](S s) { pipeline(s, 4, "chimera"); }),
      named("pipedream_4", kLlama, [](S s) { pipeline(s, 4, "pipedream"); }),
      named("pipedream_2_data_2_bf16", kLlama,
            [](S s) { pipeline(s, 2, "pipedream"), s.degrees.data = 2, s.dtype = Dtype::kBf16; }),
      named("pipedream_2bw_4_recompute", kLlama,
            [](S s) { pipeline(s, 4, "pipedream-2bw"), s.recompute.kind = RecomputeKind::kFull; }),
      named("1f1b_2_recompute", kGpt,
            [](S s) { pipeline(s, 2, "1f1b"), s.recompute.kind = RecomputeKind::kFull; }),
      named("zb_h1_2_recompute", kLlama,
            [](S s) { pipeline(s, 2, "zb-h1"), s.recompute.kind = RecomputeKind::kFull; }),
      named("zb_h1_2_tensor_2_sequence", kGpt,
            [](S s) { pipeline(s, 2, "zb-h1"), cut_tensors(s, true); }),
      named("zb_v_2_tensor_2_bf16", kLlama,
            [](S s) { pipeline(s, 2, "zb-v", 2), cut_tensors(s, false), s.dtype = Dtype::kBf16; }),
      named("1f1b_2_data_2_zero_1_tensor_2_sequence", kGpt,
            [](S s) {
              pipeline(s, 2, "1f1b"), cut_tensors(s, true);
              s.degrees.data = 2, s.zero = 1;
            }),
      named("1f1b_2_data_2_tensor_2", kLlama,
            [](S s) { pipeline(s, 2, "1f1b"), cut_tensors(s, false), s.degrees.data = 2; }),
  };
}

constexpr std::int32_t kFewestWords = 48;  ///< smallest vocabulary of the models here

// Small vocabulary and narrow feed-forward layers, so that the peak is not in the loss.
constexpr std::string_view kSlimGpt =
    R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 16,
        "n_inner": 8, "vocab_size": 48, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0})";
constexpr std::string_view kSlimGptWithDropout =
    R"({"model_type": "gpt2", "n_embd": 32, "n_layer": 4, "n_head": 4, "n_positions": 16,
        "n_inner": 8, "vocab_size": 48, "resid_pdrop": 0.1, "attn_pdrop": 0.2,
        "embd_pdrop": 0.1})";
constexpr std::string_view kSlimLlama =
    R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 4, "intermediate_size": 8,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 48,
        "max_position_embeddings": 16})";
constexpr std::string_view kManyKeyHeads =
    R"({"model_type": "llama", "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 8,
        "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 48,
        "max_position_embeddings": 16})";
/// Latent attention, a dense layer, shared experts, score corrections.
constexpr std::string_view kLatent =
    R"({"model_type": "deepseek_v3", "hidden_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 4, "intermediate_size": 16, "moe_intermediate_size": 4,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "first_k_dense_replace": 1, "q_lora_rank": 24, "kv_lora_rank": 16,
        "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "vocab_size": 48,
        "max_position_embeddings": 16})";
constexpr std::string_view kSlimMixtral =
    R"({"model_type": "mixtral", "hidden_size": 32, "num_hidden_layers": 4,
        "intermediate_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 4, "num_experts_per_tok": 2, "vocab_size": 48,
        "max_position_embeddings": 16, "sliding_window": null})";
/// Expert biases, attention sinks, sliding windows.
constexpr std::string_view kGptOss =
    R"({"model_type": "gpt_oss", "hidden_size": 32, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
        "sliding_window": 5, "vocab_size": 48, "max_position_embeddings": 16})";

std::vector<Case> dropout() {
  using S = Strategy&;
  return {
      named("dropout", kSlimGptWithDropout, [](S) {}),
      named("dropout_bf16", kSlimGptWithDropout, [](S s) { s.dtype = Dtype::kBf16; }),
      named("dropout_tensor_2", kSlimGptWithDropout, [](S s) { cut_tensors(s, false); }),
      named("dropout_tensor_2_sequence", kSlimGptWithDropout, [](S s) { cut_tensors(s, true); }),
      named("dropout_recompute", kSlimGptWithDropout,
            [](S s) { s.recompute.kind = RecomputeKind::kFull; }),
      named("dropout_selective_standard", kSlimGptWithDropout,
            [](S s) {
              s.recompute.kind = RecomputeKind::kSelective;
              s.attention = AttentionAlgorithm::kStandard;
            }),
      named("dropout_standard", kSlimGptWithDropout,
            [](S s) { s.attention = AttentionAlgorithm::kStandard; }),
      named("dropout_zb_h1_2", kSlimGptWithDropout, [](S s) { pipeline(s, 2, "zb-h1"); }),
      named("dropout_context_2", kSlimGptWithDropout, [](S s) { s.degrees.context = 2; }),
  };
}

void context(Strategy& s, int ranks, ContextAlgorithm how) {
  s.degrees.context = ranks, s.model_parallelism.context = how;
}
constexpr ContextAlgorithm kRing = ContextAlgorithm::kRing;
constexpr ContextAlgorithm kHeads = ContextAlgorithm::kAllToAll;

std::vector<Case> context_ranks() {
  using S = Strategy&;
  return {
      named("ring_2", kSlimGpt, [](S s) { context(s, 2, kRing); }),
      named("ring_4_bf16", kSlimLlama, [](S s) { context(s, 4, kRing), s.dtype = Dtype::kBf16; }),
      named("ring_2_of_two_sequences", kSlimLlama,
            [](S s) { context(s, 2, kRing), s.micro_batch = 2; }),
      named("ring_2_recompute", kSlimGpt,
            [](S s) { context(s, 2, kRing), s.recompute.kind = RecomputeKind::kFull; }),
      named("ring_2_tensor_2_sequence", kSlimLlama,
            [](S s) { context(s, 2, kRing), cut_tensors(s, true); }),
      named("ring_2_zb_h1_2_bf16", kSlimLlama,
            [](S s) { context(s, 2, kRing), pipeline(s, 2, "zb-h1"), s.dtype = Dtype::kBf16; }),
      named("ring_4_dropout", kSlimGptWithDropout, [](S s) { context(s, 4, kRing); }),
      named("ring_2_sinks", kGptOss, [](S s) { context(s, 2, kRing); }),
      named("heads_2", kSlimGpt, [](S s) { context(s, 2, kHeads); }),
      named("heads_4_bf16", kSlimGpt, [](S s) { context(s, 4, kHeads), s.dtype = Dtype::kBf16; }),
      named("heads_2_of_two_sequences", kManyKeyHeads,
            [](S s) { context(s, 2, kHeads), s.micro_batch = 2; }),
      named("heads_2_tensor_2", kManyKeyHeads,
            [](S s) { context(s, 2, kHeads), cut_tensors(s, false); }),
      named("heads_2_tensor_2_sequence_bf16", kManyKeyHeads,
            [](S s) { context(s, 2, kHeads), cut_tensors(s, true), s.dtype = Dtype::kBf16; }),
      named("heads_2_recompute", kSlimGpt,
            [](S s) { context(s, 2, kHeads), s.recompute.kind = RecomputeKind::kFull; }),
      named("heads_2_selective", kSlimGpt,
            [](S s) {
              context(s, 2, kHeads), s.recompute.kind = RecomputeKind::kSelective;
              s.attention = AttentionAlgorithm::kStandard;
            }),
      named("heads_2_zb_h1_2", kSlimGpt,
            [](S s) { context(s, 2, kHeads), pipeline(s, 2, "zb-h1"); }),
      named("heads_2_dropout", kSlimGptWithDropout, [](S s) { context(s, 2, kHeads); }),
  };
}

std::vector<Case> latent_attention() {
  using S = Strategy&;
  return {
      named("latent", kLatent, [](S) {}),
      named("latent_bf16", kLatent, [](S s) { s.dtype = Dtype::kBf16; }),
      named("latent_tensor_2", kLatent, [](S s) { cut_tensors(s, false); }),
      named("latent_tensor_2_sequence", kLatent, [](S s) { cut_tensors(s, true); }),
      named("latent_recompute", kLatent, [](S s) { s.recompute.kind = RecomputeKind::kFull; }),
      named("latent_zb_h1_2", kLatent, [](S s) { pipeline(s, 2, "zb-h1"); }),
      named("latent_context_2", kLatent, [](S s) { s.degrees.context = 2; }),
      named("latent_ring_2", kLatent, [](S s) { context(s, 2, kRing); }),
  };
}

/// With a capacity every expert gets a fixed number of rows, so the dispatched size is known.
void spread_experts(Strategy& s, int ranks, int tensor = 1) {
  s.degrees.expert = ranks, s.degrees.expert_tensor = tensor;
  s.model_parallelism.routing.capacity = 1.0;
}

std::vector<Case> experts() {
  using S = Strategy&;
  return {
      named("experts", kSlimMixtral, [](S) {}),
      named("experts_bf16_larger_micro_batches", kSlimMixtral,
            [](S s) { s.dtype = Dtype::kBf16, s.micro_batch = 2; }),
      named("experts_limited", kSlimMixtral, [](S s) { spread_experts(s, 1); }),
      named("experts_biased", kGptOss, [](S) {}),
      named("experts_2", kSlimMixtral, [](S s) { s.degrees.data = 2, spread_experts(s, 2); }),
      named("experts_4_bf16", kSlimMixtral,
            [](S s) { s.degrees.data = 4, spread_experts(s, 4), s.dtype = Dtype::kBf16; }),
      named("experts_2_fp8", kSlimMixtral,
            [](S s) {
              s.degrees.data = 2, spread_experts(s, 2);
              s.model_parallelism.routing.fp8_dispatch = true;
            }),
      named("experts_2_tensor_2", kSlimMixtral,
            [](S s) { cut_tensors(s, false), spread_experts(s, 2); }),
      named("experts_2_tensor_2_sequence", kSlimMixtral,
            [](S s) { cut_tensors(s, true), spread_experts(s, 2); }),
      named("experts_cut", kGptOss, [](S s) { cut_tensors(s, false), spread_experts(s, 1, 2); }),
      named("experts_cut_sequence_bf16", kGptOss,
            [](S s) { cut_tensors(s, true), spread_experts(s, 1, 2), s.dtype = Dtype::kBf16; }),
      named("experts_2_cut_data_2_tensor_2", kGptOss,
            [](S s) { cut_tensors(s, false), s.degrees.data = 2, spread_experts(s, 2, 2); }),
      named("experts_2_recompute", kSlimMixtral,
            [](S s) {
              s.degrees.data = 2, spread_experts(s, 2), s.recompute.kind = RecomputeKind::kFull;
            }),
      named("experts_2_zb_h1_2", kSlimMixtral,
            [](S s) { s.degrees.data = 2, spread_experts(s, 2), pipeline(s, 2, "zb-h1"); }),
      named("experts_shared_2_tensor_2_sequence", kLatent,
            [](S s) { cut_tensors(s, true), spread_experts(s, 2); }),
      named("experts_2_context_2", kSlimMixtral,
            [](S s) { s.degrees.context = 2, spread_experts(s, 2); }),
  };
}

void cut_over_data(Strategy& s, int ranks, int zero) { s.degrees.data = ranks, s.zero = zero; }

std::vector<Case> cut_parameters() {
  using S = Strategy&;
  return {
      named("data_4_zero_2", kSlimGpt, [](S s) { cut_over_data(s, 4, 2); }),
      named("data_2_zero_2_bf16", kSlimLlama,
            [](S s) { cut_over_data(s, 2, 2), s.dtype = Dtype::kBf16; }),
      named("data_2_zero_2_one_micro_batch", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 2), s.micro_batch = 4; }),
      named("data_2_zero_2_buckets", kSlimGpt,
            [](S s) {
              cut_over_data(s, 2, 2);
              s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(60'000)};
            }),
      named("data_2_zero_2_gathered_late", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 2), s.data_parallelism.overlap_gather = true; }),
      named("data_4_zero_1_gathered_late", kSlimGpt,
            [](S s) {
              cut_over_data(s, 4, 1), s.data_parallelism.overlap_gather = true;
              s.data_parallelism.buckets = {BucketRule::kBytes, Bytes(60'000)};
            }),
      named("data_4_zero_3", kSlimGpt, [](S s) { cut_over_data(s, 4, 3); }),
      named("data_2_zero_3_bf16", kSlimLlama,
            [](S s) { cut_over_data(s, 2, 3), s.dtype = Dtype::kBf16; }),
      named("data_2_zero_3_without_prefetch", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), s.data_parallelism.prefetch = 0; }),
      named("data_2_zero_3_three_ahead", kSlimLlama,
            [](S s) { cut_over_data(s, 2, 3), s.data_parallelism.prefetch = 3; }),
      named("data_2_zero_3_kept_after_forward", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), s.data_parallelism.reshard_after_forward = false; }),
      named("data_4_zero_3_shards_of_2", kSlimGpt,
            [](S s) { cut_over_data(s, 4, 3), s.data_parallelism.shard_ranks = 2; }),
      named("data_2_zero_3_ring", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), s.data_parallelism.kind = DataParallelKind::kRing; }),
      named("data_2_zero_3_recompute", kSlimLlama,
            [](S s) { cut_over_data(s, 2, 3), s.recompute.kind = RecomputeKind::kFull; }),
      named("data_2_zero_3_tensor_2_sequence", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), cut_tensors(s, true); }),
      named("data_2_zero_3_offloaded", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), s.data_parallelism.offload_optimizer = true; }),
      named("1f1b_2_data_2_zero_2", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 2), pipeline(s, 2, "1f1b"); }),
      named("1f1b_2_data_2_zero_3", kSlimLlama,
            [](S s) { cut_over_data(s, 2, 3), pipeline(s, 2, "1f1b"); }),
      named("gpipe_2_data_2_zero_3", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), pipeline(s, 2, "gpipe"); }),
      named("zb_h1_2_data_2_zero_2", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 2), pipeline(s, 2, "zb-h1"); }),
      named("zb_h1_4_data_2_zero_3", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), pipeline(s, 4, "zb-h1"); }),
      named("zb_v_2_data_2_zero_3", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), pipeline(s, 2, "zb-v", 2); }),
      named("interleaved_2_data_2_zero_3", kSlimGpt,
            [](S s) { cut_over_data(s, 2, 3), pipeline(s, 2, "interleaved-1f1b", 2); }),
      named("experts_2_data_4_zero_2", kSlimMixtral,
            [](S s) { cut_over_data(s, 4, 2), spread_experts(s, 2); }),
      named("experts_2_data_4_zero_3", kSlimMixtral,
            [](S s) { cut_over_data(s, 4, 3), spread_experts(s, 2); }),
      named("experts_4_data_4_zero_3", kSlimMixtral,
            [](S s) { cut_over_data(s, 4, 3), spread_experts(s, 4); }),
  };
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& more : {one_axis(), schedules(), dropout(), context_ranks(), latent_attention(),
                           experts(), cut_parameters()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

class CountedMemory : public testing::TestWithParam<Case> {};

TEST_P(CountedMemory, EqualsThePrediction) {
  TinyJob job = tiny_job(GetParam().config, GetParam().strategy);
  for (std::int32_t& word : job.text.words) word %= kFewestWords;
  for (auto& [key, device] : job.cluster.devices) device.kernels = KernelLibrary::kOwn;
  constexpr int kTwoSteps = 2;
  job.graph = lower(job.plan, job.model, job.cluster,
                    {.ranks = RankSet::kAll, .steps = kTwoSteps, .programs = true});
  EXPECT_THAT(check_task_graph(job.graph), testing::IsEmpty());
  const TrainingRun run = train({.plan = job.plan,
                                 .model = job.model,
                                 .graph = job.graph,
                                 .cost_model = *job.cost_model,
                                 .text = job.text,
                                 .kernels = kernel_table(Backend::kCpu),
                                 .steps = kTwoSteps});
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

INSTANTIATE_TEST_SUITE_P(Plans, CountedMemory, testing::ValuesIn(cases()),
                         [](const auto& tried) { return tried.param.name; });

}  // namespace
}  // namespace meshwright
