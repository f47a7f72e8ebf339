// Saved activations of a layer, against Korthikanti et al. (arXiv 2205.05198,
// section 4) and by hand for the other families. Bytes with 2-byte elements; T sequence length, B
// sequences, H hidden, A heads, t tensor degree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/operators.hpp"
#include "core/operators/recompute_operators.hpp"
#include "core/operators/saved_activations.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

std::int64_t kept_by_first_block(const char* preset, const ShardShape& shard,
                                 const Recompute& recompute = {}) {
  const ModelGraph model = model_from_config(find_model(preset));
  return kept_activation_bytes(model, LayerId(std::int32_t{1}), shard, recompute).value;
}

ShardShape standard_attention(std::int64_t sequences, std::int64_t length, int tensor = 1,
                              bool sequence_parallel = false) {
  ShardShape shard;
  shard.sequences = sequences;
  shard.sequence_length = length;
  shard.degrees.tensor = tensor;
  shard.sequence_parallel = sequence_parallel;
  shard.attention = AttentionAlgorithm::kStandard;
  return shard;
}

constexpr std::int64_t kLength = 2048, kHidden = 12288, kHeads = 96;

TEST(KeptByGpt3, IsEquationOneOfKorthikanti) {
  // T B (34 H + 5 A T)
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength)),
            kLength * (34 * kHidden + 5 * kHeads * kLength));
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(3, kLength)),
            3 * kLength * (34 * kHidden + 5 * kHeads * kLength));
}

TEST(KeptByGpt3, IsEquationTwoUnderTensorParallelism) {
  // T B (10 H + 24 H / t + 5 A T / t)
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength, 8)),
            kLength * (10 * kHidden + 24 * kHidden / 8 + 5 * kHeads * kLength / 8));
}

TEST(KeptByGpt3, IsEquationFourUnderSequenceParallelism) {
  // T B / t (34 H + 5 A T)
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength, 8, true)),
            kLength * (34 * kHidden + 5 * kHeads * kLength) / 8);
}

TEST(KeptByGpt3, IsThirtyFourHiddenUnderSelectiveRecomputation) {
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength),
                                {.kind = RecomputeKind::kSelective}),
            kLength * 34 * kHidden);
}

TEST(KeptByGpt3, IsTheBlocksInputUnderFullRecomputation) {
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength),
                                {.kind = RecomputeKind::kFull}),
            kLength * 2 * kHidden);
}

// Post-norm saves as many tensors as pre-norm, but every saved block input of post-norm is the
// output of the previous norm, saved by the projection that reads it: 34 H + 5 A T again.
TEST(KeptByBert, IsWhatAGptLayerKeeps) {
  EXPECT_EQ(kept_by_first_block("bert-base", standard_attention(1, 512)),
            512 * (34 * 768 + 5 * 12 * 512));
}

// Norm inputs 2 x 2 H, projection and feed-forward inputs 2 x 2 H, Q 2 H, K and V 2 x 2 G D,
// probabilities 2 A T, context 2 H, gate and up 2 x 2 F, their product 2 F; no dropout.
TEST(KeptByLlama3, IsCountedByHand) {
  constexpr std::int64_t kH = 4096, kKeys = 1024, kF = 14336, kA = 32, kT = 8192;
  EXPECT_EQ(kept_by_first_block("llama-3-8b", standard_attention(1, kT)),
            kT * (12 * kH + 4 * kKeys + 6 * kF + 2 * kA * kT));
}

// Fused attention saves no scores, but one fp32 sum per head and token.
TEST(KeptByLlama3, LosesTheScoresWithFlashAttention) {
  constexpr std::int64_t kH = 4096, kKeys = 1024, kF = 14336, kA = 32, kT = 8192;
  ShardShape shard = standard_attention(1, kT);
  shard.attention = AttentionAlgorithm::kFlash;
  EXPECT_EQ(kept_by_first_block("llama-3-8b", shard), kT * (12 * kH + 4 * kKeys + 6 * kF + 4 * kA));
}

// Attention part as above; router: scores 4 E; experts: K rows of input 2 H, gate and up 4 F,
// product 2 F, output 2 H.
TEST(KeptByMixtral, CountsTwoRowsForEveryToken) {
  constexpr std::int64_t kH = 4096, kKeys = 1024, kF = 14336, kA = 32, kT = 4096, kE = 8, kK = 2;
  EXPECT_EQ(kept_by_first_block("mixtral-8x7b", standard_attention(1, kT)),
            kT * (12 * kH + 4 * kKeys + 2 * kA * kT + 4 * kE + kK * (4 * kH + 6 * kF)));
}

// The first three layers of DeepSeek-V3 are dense. Norm inputs 4 H, projections' input 2 H,
// compressed queries 1,536 before and after their norm, compressed keys 512 likewise, queries and
// keys of 128 heads x 192, values and context x 128, feed-forward input 2 H, three widths F.
TEST(KeptByDeepSeek, CountsTheLatentVectorsAndTheExpandedHeads) {
  constexpr std::int64_t kH = 7168, kF = 18432, kA = 128, kT = 4096;
  EXPECT_EQ(
      kept_by_first_block("deepseek-v3", standard_attention(1, kT)),
      kT * (8 * kH + 4 * 1536 + 4 * 512 + 2 * kA * (192 + 192 + 128 + 128) + 6 * kF + 2 * kA * kT));
}

// ---- recomputed operators ---------------------------------------------------------------------

ShardShape fused_attention(std::int64_t length) {
  ShardShape shard = standard_attention(1, length);
  shard.attention = AttentionAlgorithm::kFlash;
  return shard;
}

std::int64_t kept_under(const char* preset, std::int64_t length, std::string_view recompute) {
  return kept_by_first_block(preset, fused_attention(length), *recompute_from_text(recompute));
}

TEST(RecomputedModules, CoreAttentionIsSelectiveRecomputation) {
  EXPECT_EQ(kept_by_first_block("gpt3-175b", standard_attention(1, kLength),
                                *recompute_from_text("modules:core_attn")),
            kLength * 34 * kHidden);
}

// Norm inputs 4 H, norm outputs 4 H, Q 2 H, context 2 H; K and V 2 x 2 G D; gate and up 4 F, their
// product 2 F; statistics 4 A.
TEST(RecomputedModules, DropTheirTensorsInALlamaBlock) {
  constexpr std::int64_t kH = 4096, kKeys = 1024, kF = 14336, kA = 32, kT = 8192;
  const auto kept = [&](std::string_view recompute) {
    return kept_under("llama-3-8b", kT, recompute);
  };
  EXPECT_EQ(kept("none"), kT * (12 * kH + 4 * kKeys + 6 * kF + 4 * kA));
  EXPECT_EQ(kept("modules:layernorm"), kT * (8 * kH + 4 * kKeys + 6 * kF + 4 * kA));
  EXPECT_EQ(kept("modules:mlp"), kT * (12 * kH + 4 * kKeys + 4 * kA));
  EXPECT_EQ(kept("modules:core_attn"), kT * (12 * kH + 4 * kKeys + 6 * kF));
  EXPECT_EQ(kept("modules:core_attn,layernorm,mlp"), kT * (8 * kH + 4 * kKeys));
}

// torchtitan saves products 1, 3, 5 and 7 of wq, wk, wv, wo, w1, w3, w2: Q 2 H, V 2 G D, w1 2 F and
// w2 2 H; the block's input 2 H, the context 2 H and its statistics 4 A.
TEST(RecomputedOperators, OfTorchtitanSaveEverySecondProduct) {
  constexpr std::int64_t kH = 4096, kKeys = 1024, kF = 14336, kA = 32, kT = 8192;
  EXPECT_EQ(kept_under("llama-3-8b", kT, "torch-selective"),
            kT * (8 * kH + 2 * kKeys + 2 * kF + 4 * kA));
}

// DeepSeek-V3: 128 heads with keys of 128 + 64 and values of 128, in bf16. The first block is
// dense.
TEST(RecomputedModules, DropTheUpProjectionsOfLatentAttention) {
  constexpr std::int64_t kT = 4096;
  EXPECT_EQ(
      kept_under("deepseek-v3", kT, "none") - kept_under("deepseek-v3", kT, "modules:mla_up_proj"),
      kT * 2 * 128 * (192 + 192 + 128));
}

// The last block of DeepSeek-V3: eight experts of width 2,048 per token.
TEST(RecomputedModules, DropTheActivationOfExperts) {
  constexpr std::int64_t kT = 4096;
  const ModelGraph model = model_from_config(find_model("deepseek-v3"));
  const LayerId block(model.layers.size() - 2);
  const auto kept = [&](std::string_view recompute) {
    return kept_activation_bytes(model, block, fused_attention(kT), *recompute_from_text(recompute))
        .value;
  };
  EXPECT_EQ(kept("none") - kept("modules:moe_act"), kT * 2 * 8 * 2'048);
  EXPECT_EQ(kept("modules:moe"), kept("modules:moe,moe_act,shared_experts"));
  EXPECT_LT(kept("modules:moe"), kept("modules:moe_act,shared_experts"));
}

// Tokens of width 7,168 come back from eight experts, unless the experts are computed again.
TEST(RecomputedModules, HaveNoOutputsOfExpertsToLeaveOut) {
  constexpr std::int64_t kT = 4096;
  const ModelGraph model = model_from_config(find_model("deepseek-v3"));
  const LayerId block(model.layers.size() - 2);
  TrainerMemory memory;
  memory.weighs_expert_activations = true;
  const auto left_out = [&](std::string_view text) {
    const Recompute recompute = *recompute_from_text(text);
    const ShardShape shard = fused_attention(kT);
    return (kept_activation_bytes(model, block, shard, recompute) -
            kept_activation_bytes(model, block, shard, recompute, memory))
        .value;
  };
  EXPECT_EQ(left_out("none"), kT * 2 * 8 * 7'168);
  EXPECT_EQ(left_out("modules:moe_act"), kT * 2 * 8 * 7'168);
  EXPECT_EQ(left_out("modules:moe"), 0);
  EXPECT_EQ(left_out("torch-selective"), 0);
}

std::vector<double> fractions_of(const char* preset, std::string_view recompute) {
  const ModelGraph model = model_from_config(find_model(preset));
  return recomputed_fractions(model, LayerId(std::int32_t{1}), *recompute_from_text(recompute));
}

// Operators of a block: norm, q k v, rotary, attention, output, residual, norm, gate and up,
// SwiGLU, down, residual. Of 4,096 + 2 x 1,024 columns the keys' are recomputed; of gate and up one
// half; nothing from the last saved input (of down) on.
TEST(RecomputedOperators, AreRunAgainBeforeTheBackwardPass) {
  EXPECT_THAT(
      fractions_of("llama-3-8b", "torch-selective"),
      testing::ElementsAre(1, testing::DoubleEq(1024.0 / 6144), 1, 0, 1, 1, 1, 0.5, 1, 0, 0));
  EXPECT_THAT(fractions_of("llama-3-8b", "modules:layernorm,mlp"),
              testing::ElementsAre(1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0));
}

TEST(RecomputeText, ComesBack) {
  for (const std::string_view text : {"none", "selective", "full", "block:4", "block:4,0,2",
                                      "modules:layernorm,moe_act", "torch-selective"}) {
    const auto parsed = recompute_from_text(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  for (const std::string_view text :
       {"", "block:", "block:1,", "block:-1", "modules:", "modules:norm", "modules:layernorm,"})
    EXPECT_FALSE(recompute_from_text(text)) << text;
}

}  // namespace
}  // namespace meshwright
