#include "core/operators/operators.hpp"
#include "core/base/value_named.hpp"
#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/saved_activations.hpp"

#include <gtest/gtest.h>

#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr std::int64_t kB = 3, kT = 128, kH = 64, kA = 4, kV = 512;
constexpr LayerId kBlock(1), kHead(3);

ModelGraph model() { return gpt({.blocks = 2, .hidden = kH, .heads = kA, .vocabulary = kV}); }

ShardShape shard(int tensor, bool sequence_parallel, AttentionAlgorithm attention) {
  ShardShape shape;
  shape.sequences = kB;
  shape.sequence_length = kT;
  shape.degrees.tensor = tensor;
  shape.sequence_parallel = sequence_parallel;
  shape.attention = attention;
  return shape;
}
ShardShape standard(int tensor, bool sequence_parallel = false) {
  return shard(tensor, sequence_parallel, AttentionAlgorithm::kStandard);
}
std::int64_t kept(const ShardShape& shape, RecomputeKind kind = RecomputeKind::kNone) {
  return kept_activation_bytes(model(), kBlock, shape, {.kind = kind, .blocks = 0}).value;
}

// Korthikanti et al., arXiv 2205.05198; TBH = 128 * 3 * 64 = 24,576 and A T / H = 8.
constexpr std::int64_t kTbh = kT * kB * kH, kScores = kA * kT / kH;

TEST(KeptActivations, FollowEquation1OfKorthikanti) {
  EXPECT_EQ(kept(standard(1)), kTbh * (34 + 5 * kScores));  // 24,576 * 74
  EXPECT_EQ(kept(standard(1)), 1'818'624);
}

TEST(KeptActivations, FollowEquation2UnderTensorParallelism) {
  for (const int t : {2, 4})
    EXPECT_EQ(kept(standard(t)), kTbh * 10 + kTbh * (24 + 5 * kScores) / t);
}

TEST(KeptActivations, FollowEquation4UnderSequenceParallelism) {
  for (const int t : {2, 4}) EXPECT_EQ(kept(standard(t, true)), kTbh / t * (34 + 5 * kScores));
}

TEST(KeptActivations, DropTheScoresWhenSelectivelyRecomputed) {
  for (const int t : {2, 4})
    EXPECT_EQ(kept(standard(t, true), RecomputeKind::kSelective), kTbh / t * 34);
  EXPECT_EQ(kept(standard(1), RecomputeKind::kSelective), kTbh * 34);
}

TEST(KeptActivations, AreTheInputAloneWhenFullyRecomputed) {
  EXPECT_EQ(kept(standard(1), RecomputeKind::kFull), 2 * kTbh);
  EXPECT_EQ(kept(standard(4), RecomputeKind::kFull), 2 * kTbh);  // whole on every tensor rank
  EXPECT_EQ(kept(standard(4, true), RecomputeKind::kFull), 2 * kTbh / 4);
}

// Fused attention keeps 34 TBH and one fp32 per head and token: 4 * 4 * 384 = 6,144.
TEST(KeptActivations, HoldNoScoresUnderFusedAttention) {
  const ShardShape flash = shard(1, false, AttentionAlgorithm::kFlash);
  EXPECT_EQ(kept(flash), kTbh * 34 + 4 * kA * kB * kT);
  EXPECT_EQ(kept(flash, RecomputeKind::kSelective), kept(flash));
}

TEST(KeptActivations, ShrinkWithContextParallelism) {
  ShardShape shape = shard(1, false, AttentionAlgorithm::kFlash);
  const std::int64_t whole = kept(shape);
  shape.degrees.context = 4;
  EXPECT_EQ(kept(shape) * 4, whole);
}

// Zero Bubble (arXiv 2401.10241, table 1): W needs 32 TBH of the 34: inputs qkv 2, projection 2,
// up 2, down 8; gradients qkv 6, projection 2, up 8, down 2.
TEST(WeightGradientNeeds, AreThe32OfZeroBubble) {
  const WeightGradientNeeds needs = weight_gradient_needs(model(), kBlock, standard(1));
  EXPECT_EQ(needs.inputs, Bytes(14 * kTbh));
  EXPECT_EQ(needs.output_gradients, Bytes(18 * kTbh));
}

// Over t tensor ranks every rank needs all tokens of the gradients behind its two row-cut products
// (projection 2, down 2), with sequence parallelism too: they were gathered for the input
// gradients. The rest is cut: over features (qkv 6, up 8), or over tokens.
TEST(WeightGradientNeeds, HaveGatheredGradientsUnderSequenceParallelism) {
  for (const int t : {2, 4}) {
    const WeightGradientNeeds needs = weight_gradient_needs(model(), kBlock, standard(t, true));
    EXPECT_EQ(needs.inputs, Bytes(14 * kTbh / t));
    EXPECT_EQ(needs.output_gradients, Bytes(14 * kTbh / t + 4 * kTbh));
    EXPECT_EQ(needs.output_gradients,
              weight_gradient_needs(model(), kBlock, standard(t)).output_gradients);
  }
}

// Logits: 4 bytes * 384 tokens * 512 words, apart from the 4 TBH of the head's norm and product.
TEST(Logits, AreCountedOnceAndCutOverTensorRanks) {
  const ModelGraph graph = model();
  EXPECT_EQ(logit_bytes(graph, kHead, standard(1)).values, Bytes(4 * 384 * 512));
  EXPECT_EQ(logit_bytes(graph, kHead, standard(4)).values, Bytes(4 * 384 * 128));
  EXPECT_EQ(logit_bytes(graph, kHead, standard(4)).gradient, Bytes(2 * 384 * 128));
  EXPECT_EQ(kept_activation_bytes(graph, kHead, standard(1), {}), Bytes(4 * kTbh));
}

TEST(Vocabulary, IsPaddedToAMultipleOf128TimesTensor) {
  EXPECT_EQ(padded_vocabulary(50'257, 1), 50'304);  // 393 * 128
  EXPECT_EQ(padded_vocabulary(50'257, 8), 51'200);  // 50 * 1024
  EXPECT_EQ(padded_vocabulary(51'200, 8), 51'200);
}

// 72 B T L H^2 (1 + T / 6H + V / 12LH) is three forwards (Narayanan et al., arXiv 2104.04473).
TEST(ForwardFlops, AreAThirdOfTheFormulaOfMegatron) {
  const ModelGraph graph = model();
  double sum = 0;
  for (const Operator& op : graph.operators) sum += forward_flops(op, kB, kT).value;
  const double layers = 2, b = kB, t = kT, h = kH, v = kV;
  const double formula = 72 * b * t * layers * h * h * (1 + t / (6 * h) + v / (12 * layers * h));
  EXPECT_DOUBLE_EQ(3 * sum, formula);
}

double kernel_flops(const ShardShape& shape) {
  const ModelGraph graph = model();
  double sum = 0;
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    for (const Phase phase : {Phase::kForward, Phase::kBackwardInput, Phase::kBackwardWeight})
      for (const Kernel& kernel : kernels_of(graph, OperatorId(i), shape, phase))
        sum += kernel.flops.value;
  return sum;
}

TEST(Kernels, DoTheWholeArithmeticTogetherHoweverItIsCut) {
  const double whole = kernel_flops(standard(1));
  const double layers = 2, b = kB, t = kT, h = kH, v = kV;
  EXPECT_DOUBLE_EQ(whole, 72 * b * t * layers * h * h * (1 + t / (6 * h) + v / (12 * layers * h)));
  for (const int tensor : {2, 4}) {
    EXPECT_DOUBLE_EQ(kernel_flops(standard(tensor)) * tensor, whole);
    EXPECT_DOUBLE_EQ(kernel_flops(standard(tensor, true)) * tensor, whole);
  }
  ShardShape context = standard(1);
  context.degrees.context = 4;
  EXPECT_DOUBLE_EQ(kernel_flops(context) * 4, whole);
}

// Fused and causal: half of 2 products forward, half of 5 backward.
// 2 * B A T * T * D each: 2 * 12 * 128 * 128 * 16 = 6,291,456.
TEST(Kernels, OfFusedCausalAttentionSkipHalfOfTheScores) {
  const ModelGraph graph = model();
  const ShardShape flash = shard(1, false, AttentionAlgorithm::kFlash);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    if (!std::holds_alternative<Attention>(graph.operators[i].shape)) continue;
    const auto forward = kernels_of(graph, OperatorId(i), flash, Phase::kForward);
    const auto backward = kernels_of(graph, OperatorId(i), flash, Phase::kBackwardInput);
    ASSERT_EQ(forward.size(), 1u);
    EXPECT_EQ(forward[0].flops, Flops(6'291'456.0));
    EXPECT_EQ(backward[0].flops, Flops(2.5 * 6'291'456.0));
    // Q, K, V in, O out: 4 * 24,576 elements of 2 bytes.
    EXPECT_EQ(forward[0].memory_traffic, Bytes(8 * kTbh));
    EXPECT_TRUE(kernels_of(graph, OperatorId(i), flash, Phase::kBackwardWeight).empty());
  }
}

// 128 positions in chunks of 48, 48 and 32: a query sees (96 * 48 + 32 * 32) / 128 / 2 = 22 keys on
// average. 2 * 12 * 128 * 22 * (16 + 16) = 2,162,688.
TEST(Kernels, OfChunkedAttentionSeeTheirChunkOnly) {
  ModelGraph graph = model();
  const ShardShape flash = shard(1, false, AttentionAlgorithm::kFlash);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    auto* attention = std::get_if<Attention>(&graph.operators[i].shape);
    if (attention == nullptr) continue;
    attention->chunk = 48;
    const Kernel forward = kernels_of(graph, OperatorId(i), flash, Phase::kForward).at(0);
    EXPECT_EQ(forward.flops, Flops(2'162'688.0));
    EXPECT_EQ(forward.n, 48);
    attention->chunk = 128;  // one chunk: as without
    EXPECT_EQ(kernels_of(graph, OperatorId(i), flash, Phase::kForward).at(0).flops,
              Flops(6'291'456.0));
  }
}

// One Linear by hand: 384 rows, 64 x 64, half of the columns.
TEST(Kernels, OfAColumnCutHaveLocalShapesAndTraffic) {
  const ModelGraph graph = model();
  const OperatorId query(4);  // words, positions, sum, norm, query
  ASSERT_TRUE(std::holds_alternative<Linear>(graph.operators[4].shape));
  const Kernel f = kernels_of(graph, query, standard(2), Phase::kForward).at(0);
  EXPECT_EQ(std::tuple(f.m, f.n, f.k), std::tuple(384, 32, 64));
  EXPECT_EQ(f.memory_traffic, Bytes(2 * (384 * 64 + 384 * 32 + 64 * 32)));
  const Kernel i = kernels_of(graph, query, standard(2), Phase::kBackwardInput).at(0);
  EXPECT_EQ(std::tuple(i.m, i.n, i.k), std::tuple(384, 64, 32));
  const Kernel w = kernels_of(graph, query, standard(2), Phase::kBackwardWeight).at(0);
  EXPECT_EQ(std::tuple(w.m, w.n, w.k), std::tuple(64, 32, 384));
  EXPECT_EQ(w.memory_traffic, Bytes(2 * (384 * 64 + 384 * 32) + 8 * 64 * 32));
}

// Experts: 384 tokens * 2 choices = 768 rows over 4 experts.
TEST(Kernels, OfExpertsShareTheRoutedRowsEvenly) {
  const ModelGraph graph = mixture(1);
  ShardShape shape = shard(1, false, AttentionAlgorithm::kFlash);
  const OperatorId up(3);  // words, router, dispatch, up
  const Kernel alone = kernels_of(graph, up, shape, Phase::kForward).at(0);
  EXPECT_EQ(alone.kind, KernelKind::kGroupedGemm);
  EXPECT_EQ(std::tuple(alone.batch, alone.m, alone.n, alone.k), std::tuple(4, 192, 128, 64));
  shape.degrees.expert = 2;  // two experts here, with the rows of two ranks
  const Kernel half = kernels_of(graph, up, shape, Phase::kForward).at(0);
  EXPECT_EQ(std::tuple(half.batch, half.m, half.n, half.k), std::tuple(2, 384, 128, 64));
  EXPECT_EQ(half.flops, alone.flops);
}

// A GPT block: norm, three products for queries, keys and values, attention, projection, add; norm,
// up, GELU, down, add. The weight gradient of each product comes with the column sums for its bias.
TEST(Kernels, SayWhatTheyCompute) {
  const ModelGraph graph = model();
  const auto routines = [&](Phase phase) {
    std::string names;
    const Layer& block = graph.layers[kBlock.index()];
    for (int i = 0; i < block.operator_count; ++i)
      for (const Kernel& kernel : kernels_of(graph, OperatorId(block.first_operator + i),
                                             shard(1, false, AttentionAlgorithm::kFlash), phase))
        names.append(name_of(kernel.routine)).append(" ");
    return names;
  };
  EXPECT_EQ(routines(Phase::kForward),
            "layer-norm product product product attention product residual "
            "layer-norm product gelu product residual ");
  EXPECT_EQ(routines(Phase::kBackwardWeight),
            "product bias product bias product bias product bias product bias product bias ");
}

TEST(Routines, AreFoundByTheirNames) {
  for (int i = 0; i < kRoutineCount; ++i) {
    const auto routine = static_cast<Routine>(i);
    EXPECT_EQ(value_named<Routine>(name_of(routine), kRoutineCount), routine);
  }
  for (int i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    EXPECT_EQ(value_named<Phase>(name_of(phase), kPhaseCount), phase);
  }
  EXPECT_EQ(value_named<Routine>("nothing", kRoutineCount), std::nullopt);
}

// A block: 12 H^2 + 13 H; embedding (V + T) H; head 2 H + V H.
TEST(LocalParameters, AddUpToTheModelAndAreCut) {
  const ModelGraph graph = model();
  const std::int64_t block = 12 * kH * kH + 13 * kH;
  EXPECT_EQ(local_parameters(graph, kBlock, standard(1)).dense, block);
  EXPECT_EQ(parameter_count(graph, kBlock), block);
  EXPECT_EQ(local_parameters(graph, kBlock, standard(2)).dense,
            12 * kH * kH / 2 + 7 * kH / 2 + 6 * kH);  // whole: 2 norms and 2 row biases
  EXPECT_EQ(local_parameters(graph, LayerId(0), standard(2)).dense, (kV / 2 + 128) * kH);
}

TEST(LocalParameters, CountATiedTableOnceAndNameTheCopy) {
  const ModelGraph graph =
      gpt({.blocks = 2, .hidden = kH, .heads = kA, .vocabulary = kV, .tied = true});
  EXPECT_EQ(local_parameters(graph, kHead, standard(1)).dense, 2 * kH);
  EXPECT_EQ(local_tied_parameters(graph, standard(2)), kV / 2 * kH);
  EXPECT_EQ(local_tied_parameters(model(), standard(2)), 0);
}

TEST(LocalParameters, OfExpertsAreCutOverExpertAndExpertTensorRanks) {
  const ModelGraph graph = mixture(1);
  ShardShape shape = standard(1);
  EXPECT_EQ(local_parameters(graph, kBlock, shape).expert, 2 * 4 * 64 * 128);
  shape.degrees.expert = 2;
  shape.degrees.expert_tensor = 2;
  EXPECT_EQ(local_parameters(graph, kBlock, shape).expert, 2 * 64 * 128);
  EXPECT_EQ(local_parameters(graph, kBlock, shape).dense, 64 * 4);
}

// B T = 3 * 128 = 384 tokens of 64 elements, 512 scores each. The head of gpt() is sharded over the
// vocabulary: both tensor ranks have 256 scores of all tokens. Without a vocabulary cut a rank has
// all 512 scores, under sequence parallelism of its own 192 tokens only.
TEST(LogitBytes, CoverTheTokensThatTheHeadSees) {
  EXPECT_EQ(logit_bytes(model(), kHead, standard(2, true)).values, Bytes(384 * 256 * 4));
  ModelGraph unsharded = model();
  Operator& logits = unsharded.operators[unsharded.operators.size() - kOutputOperators];
  std::get<Linear>(logits.shape).cut = LinearCut::kReplicated;
  std::get<ActivationTensor>(unsharded.tensors[logits.outputs.front().index()].shape).cut =
      ActivationCut::kTokens;
  EXPECT_EQ(logit_bytes(unsharded, kHead, standard(2, false)).values, Bytes(384 * 512 * 4));
  EXPECT_EQ(logit_bytes(unsharded, kHead, standard(2, true)).values, Bytes(192 * 512 * 4));
}

}  // namespace
}  // namespace meshwright
