// Saved activations of a layer, against Korthikanti et al. (arXiv 2205.05198,
// section 4) and by hand for the other families. Bytes with 2-byte elements; T sequence length, B
// sequences, H hidden, A heads, t tensor degree.
#include <gtest/gtest.h>

#include "core/operator_work.hpp"
#include "models/load.hpp"

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

}  // namespace
}  // namespace meshwright
