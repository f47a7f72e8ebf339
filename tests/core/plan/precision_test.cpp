// Kernels, saved bytes, messages and resident memory of quantized training, derived by hand. N =
// 384 rows of a linear layer of 64 x 64 have 24,576 elements.
#include "core/plan/precision.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/lowering/lower.hpp"
#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/operators.hpp"
#include "core/operators/saved_activations.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using namespace testing_models;

constexpr std::int64_t kX = 384 * 64, kW = 64 * 64;
constexpr LayerId kBlock(1);
/// Of the second layer: norm, query, key, value, attention, projection.
constexpr OperatorId kQuery(4), kAttention(7), kProjection(8);

ModelGraph model() { return gpt({.blocks = 2}); }

struct Case {
  Dtype dtype = Dtype::kFp8;
  Fp8Recipe recipe = Fp8Recipe::kDelayed;
  int tensor = 1;
  bool any_layout = false;
};
ShardShape shard(const Case& c) {
  ShardShape shape;
  shape.sequences = 3;
  shape.sequence_length = 128;
  shape.degrees.tensor = c.tensor;
  shape.sequence_parallel = c.tensor > 1;
  shape.dtype = c.dtype;
  shape.precision.fp8_recipe = c.recipe;
  shape.reads_any_layout = c.any_layout;
  return shape;
}

struct CastCase {
  Case shape;
  int launches = 1;
  std::int64_t traffic = 0;
};

// The input is read (2 bytes) by every kernel: one finds the largest element, one writes the copies
// (NVFP4: one each). Copies: 1 byte; with block scales 24,576 + 192 * 4 = 25,344 (1 x 128, fp32),
// 24,576
// + 768 = 25,344 (1 x 32, 1 byte), 12,288 + 1,536 = 13,824 (NVFP4: 1 x 16, 1 byte).
TEST(Casts, OfAnInputFollowTheRecipe) {
  const CastCase cases[]{
      {{.recipe = Fp8Recipe::kDelayed}, 1, 4 * kX},
      {{.recipe = Fp8Recipe::kDelayed, .any_layout = true}, 1, 3 * kX},
      {{.recipe = Fp8Recipe::kTensorwise}, 2, 6 * kX},
      {{.recipe = Fp8Recipe::kTensorwise, .any_layout = true}, 2, 5 * kX},
      {{.recipe = Fp8Recipe::kBlockwise}, 1, 2 * kX + 2 * 25'344},
      {{.recipe = Fp8Recipe::kMxfp8, .any_layout = true}, 1, 2 * kX + 2 * 25'344},
      {{.dtype = Dtype::kNvfp4, .any_layout = true}, 3, 6 * kX + 2 * 13'824}};
  for (const CastCase& c : cases)
    for (const Phase phase : {Phase::kForward, Phase::kBackwardInput}) {
      SCOPED_TRACE(c.traffic);
      const auto kernels = kernels_of(model(), kQuery, shard(c.shape), phase);
      ASSERT_EQ(kernels.size(), 2u);
      EXPECT_EQ(kernels[0].routine, Routine::kCast);
      EXPECT_EQ(kernels[0].kind, KernelKind::kMemoryBound);
      EXPECT_EQ(kernels[0].dtype, Dtype::kBf16);
      EXPECT_EQ(kernels[0].launches, c.launches);
      EXPECT_EQ(kernels[0].memory_traffic, Bytes(c.traffic));
      EXPECT_EQ(kernels[1].dtype, c.shape.dtype);
    }
}

// Operands in 8 or 4 bits with their scales, results in 16 bits, weight gradients in fp32 (read and
// written). NVFP4: 13,824 bytes of input, 2,048 + 256 of weights.
TEST(QuantizedGemms, ReadSmallOperandsAndWriteWideResults) {
  const auto product = [](const Case& c, Phase phase) {
    return kernels_of(model(), kQuery, shard(c), phase).at(phase == Phase::kBackwardWeight ? 0 : 1);
  };
  EXPECT_EQ(product({}, Phase::kForward).memory_traffic, Bytes(kX + kW + 2 * kX));
  EXPECT_EQ(product({}, Phase::kBackwardInput).memory_traffic, Bytes(kX + kW + 2 * kX));
  EXPECT_EQ(product({}, Phase::kBackwardWeight).memory_traffic, Bytes(2 * kX + 8 * kW));
  EXPECT_EQ(product({.dtype = Dtype::kNvfp4}, Phase::kForward).memory_traffic,
            Bytes(13'824 + 2'304 + 2 * kX));
}

// Attention and the head (512 words) keep 16 bits.
TEST(QuantizedGemms, AreTheLinearLayersOfBlocks) {
  const ModelGraph graph = model();
  const ShardShape fp8 = shard({});
  EXPECT_EQ(kernels_of(graph, kAttention, fp8, Phase::kForward).at(0).dtype, Dtype::kBf16);
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const auto* linear = std::get_if<Linear>(&graph.operators[i].shape);
    EXPECT_EQ(is_quantized(graph, OperatorId(i), fp8), linear != nullptr && linear->out != 512);
    EXPECT_FALSE(is_quantized(graph, OperatorId(i), shard({.dtype = Dtype::kBf16})));
  }
  const auto head = kernels_of(graph, OperatorId(graph.operators.size() - 2), fp8, Phase::kForward);
  ASSERT_EQ(head.size(), 1u);
  EXPECT_EQ(head[0].dtype, Dtype::kBf16);
}

// Two tensor ranks quantize their own 192 rows once (2 + 1 bytes) before the tokens are gathered,
// and transpose all 384 rows of them for the weight gradient (1 + 1 bytes). Copies with block
// scales are both made before the gather: 12,288 + 384 bytes each.
TEST(Casts, PrecedeTheGatherOfSequenceParallelism) {
  const auto traffic = [](OperatorId op, Fp8Recipe recipe, Phase phase) {
    return kernels_of(model(), op, shard({.recipe = recipe, .tensor = 2}), phase)
        .at(0)
        .memory_traffic;
  };
  EXPECT_EQ(traffic(kQuery, Fp8Recipe::kDelayed, Phase::kForward), Bytes(3 * kX / 2));
  EXPECT_EQ(traffic(kQuery, Fp8Recipe::kDelayed, Phase::kBackwardWeight), Bytes(2 * kX));
  EXPECT_EQ(traffic(kProjection, Fp8Recipe::kDelayed, Phase::kBackwardInput), Bytes(3 * kX / 2));
  EXPECT_EQ(traffic(kProjection, Fp8Recipe::kDelayed, Phase::kBackwardWeight), Bytes(2 * kX));
  EXPECT_EQ(traffic(kQuery, Fp8Recipe::kMxfp8, Phase::kForward), Bytes(kX + kX + 2 * 384));
  EXPECT_EQ(kernels_of(model(), kQuery, shard({.recipe = Fp8Recipe::kMxfp8, .tensor = 2}),
                       Phase::kBackwardWeight)
                .front()
                .kind,
            KernelKind::kGemm);
}

// Fully sharded weights are quantized in every pass: 2 + 1 bytes each.
TEST(Casts, OfFullyShardedWeightsBelongToEveryPass) {
  ShardShape shape = shard({});
  shape.gathers_weights = true;
  const auto kernels = kernels_of(model(), kQuery, shape, Phase::kForward);
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[0].memory_traffic, Bytes(3 * kW));
}

// A block saves 34 bytes per token and hidden element in 16 bits (Korthikanti et al.), 18 of which
// are inputs of GEMMs, in quantized form: 3 x 1 for query, key and value, which save a copy each, 1
// for the projection, 1 and 4 in the feed-forward layer. 22 remain: inputs of norms 4, queries,
// keys, values and the output of fused attention 8, input of GELU 8, masks 2. Softmax sums: 4
// heads.
TEST(KeptActivations, OfQuantizedGemmsAreQuantized) {
  const auto kept = [](const Case& c) {
    return kept_activation_bytes(model(), kBlock, shard(c), {}).value;
  };
  constexpr std::int64_t kStatistics = 4 * 4 * 384;
  EXPECT_EQ(kept({.dtype = Dtype::kBf16}), 34 * kX + kStatistics);
  EXPECT_EQ(kept({}), (22 + 9) * kX + kStatistics);
  EXPECT_EQ(kept({.recipe = Fp8Recipe::kMxfp8}), 22 * kX + 9 * 25'344 + kStatistics);
  EXPECT_EQ(kept({.dtype = Dtype::kNvfp4}), 22 * kX + 9 * 13'824 + kStatistics);
  const WeightGradientNeeds needs = weight_gradient_needs(model(), kBlock, shard({}));
  EXPECT_EQ(needs.inputs, Bytes(9 * kX));
  EXPECT_EQ(needs.output_gradients, Bytes(9 * kX));
}

// ---- lowered plans --------------------------------------------------------------------------

Cluster cluster_with_fp8(int devices, std::optional<int> capability) {
  Cluster cluster = cluster_of(1, devices);
  DeviceModel& device = cluster.devices.at("test-device");
  device.peak[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(600e12);
  device.peak[static_cast<std::size_t>(Dtype::kNvfp4)] = FlopsPerSecond(1200e12);
  device.compute_capability = capability;
  return cluster;
}

struct Lowered {
  Strategy strategy = strategy_of({}, 1);
  std::optional<int> capability = 90;
  TaskGraph graph() const {
    const int devices = static_cast<int>(rank_count(strategy.degrees));
    return lower(plan_of(strategy, 3), gpt({.blocks = 3}), cluster_with_fp8(devices, capability));
  }
};

/// 3 blocks of 49,984, tables 640 * 64, head 128 + 512 * 64; 12 * 64^2 per block are quantized.
constexpr std::int64_t kParameters = 3 * 49'984 + 640 * 64 + 128 + 512 * 64;
constexpr std::int64_t kQuantized = 3 * 12 * 64 * 64;

TEST(QuantizedWeights, AreCachedBesideThe16BitOnesOrReplaceThem) {
  const auto weights = [](Precision precision, std::optional<int> capability, int wide = 0) {
    Lowered lowered{.capability = capability};
    lowered.strategy.dtype = Dtype::kFp8;
    lowered.strategy.precision = precision;
    lowered.strategy.precision.wide_blocks = wide;
    return lowered.graph().ranks[0].resident[MemoryClass::kWeights].value - 2 * kParameters;
  };
  EXPECT_EQ(weights({}, 90), 2 * kQuantized);
  EXPECT_EQ(weights({}, 100), kQuantized);
  EXPECT_EQ(weights({.fp8_parameters = true}, 90), 0);
  EXPECT_EQ(weights({.fp8_parameters = true}, 100), -kQuantized);
  EXPECT_EQ(weights({.fp8_recipe = Fp8Recipe::kMxfp8}, 100), 2 * (kQuantized + kQuantized / 32));
  EXPECT_EQ(weights({}, 90, 1), 2 * kQuantized / 3);  // one of three blocks is quantized
}

std::vector<Kernel> update_kernels(const TaskGraph& graph) {
  std::vector<Kernel> kernels;
  for (const Work& work : graph.works)
    if (work.kind == TaskKind::kOptimizer)
      for (const Step& step : graph.parts[static_cast<std::size_t>(work.parts.front().part)].steps)
        kernels.push_back(std::get<Kernel>(step));
  return kernels;
}

// Once per step: delayed 2 + 1 + 1 bytes, tensorwise 2 + 2 + 1 + 1; transposes of gathered fp8 1
// + 1.
TEST(QuantizedWeights, AreCastAfterTheUpdate) {
  const auto cast = [](Precision precision, std::optional<int> capability) {
    Lowered lowered{.capability = capability};
    lowered.strategy.dtype = Dtype::kFp8;
    lowered.strategy.precision = precision;
    const std::vector<Kernel> kernels = update_kernels(lowered.graph());
    return kernels.size() == 2 ? kernels[1].memory_traffic.value : 0;
  };
  EXPECT_EQ(cast({}, 90), 4 * kQuantized);
  EXPECT_EQ(cast({.fp8_recipe = Fp8Recipe::kTensorwise}, 90), 6 * kQuantized);
  EXPECT_EQ(cast({.fp8_parameters = true}, 90), 2 * kQuantized);
  EXPECT_EQ(cast({.fp8_parameters = true}, 100), 0);
}

// The kernels of a step all have a peak rate: those at the ends of the model are bf16.
TEST(QuantizedWeights, OfBlocksAtTheEndsStayIn16Bits) {
  Lowered lowered;
  lowered.strategy.dtype = Dtype::kNvfp4;
  lowered.strategy.precision.wide_blocks = 1;
  const TaskGraph graph = lowered.graph();
  std::vector<int> quantized;
  for (const WorkPartUse& use : graph.works.front().parts) {
    int count = 0;
    for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps)
      if (const auto* kernel = std::get_if<Kernel>(&step))
        count += kernel->dtype == Dtype::kNvfp4 ? 1 : 0;
    for (int i = 0; i < use.count; ++i) quantized.push_back(count);
  }
  EXPECT_THAT(quantized, ElementsAre(0, 0, 6, 0, 0));  // embedding, blocks, head
}

Bytes sum_of(const TaskGraph& graph, CollectiveKind kind, Axis axis) {
  Bytes sum;
  for (const Work& work : graph.works) {
    if (work.kind == TaskKind::kCollective && work.collective.kind == kind &&
        work.collective.axis == axis)
      sum += work.collective.bytes;
  }
  return sum;
}

// ZeRO 1 over two replicas gathers 2 bytes per parameter, 1 per quantized one.
TEST(Fp8ParameterGather, SendsOneBytePerQuantizedParameter) {
  const auto gathered = [](Precision precision, std::optional<int> capability) {
    Lowered lowered{.strategy = strategy_of({.data = 2}, 1), .capability = capability};
    lowered.strategy.zero = 1;
    lowered.strategy.dtype = Dtype::kFp8;
    lowered.strategy.precision = precision;
    return sum_of(lowered.graph(), CollectiveKind::kAllGather, Axis::kData).value;
  };
  EXPECT_EQ(gathered({}, 90), 2 * kParameters);
  EXPECT_EQ(gathered({.fp8_parameters = true}, 90), 2 * kParameters - kQuantized);
  EXPECT_EQ(gathered({.fp8_recipe = Fp8Recipe::kMxfp8, .fp8_parameters = true}, 100),
            2 * kParameters);
}

// Over two tensor ranks with sequence parallelism, 256 tokens of 64 elements: fp8 gathers are half
// as large as the 16-bit reduce-scatters.
TEST(SequenceParallelism, GathersQuantizedTokens) {
  Lowered lowered{.strategy = strategy_of({.tensor = 2}, 1)};
  lowered.strategy.sequence_parallel = true;
  lowered.strategy.dtype = Dtype::kFp8;
  const TaskGraph graph = lowered.graph();
  const WorkPart& block = graph.parts[static_cast<std::size_t>(graph.works.front().parts[1].part)];
  std::vector<std::int64_t> sizes;
  for (const Step& step : block.steps)
    if (const auto* collective = std::get_if<Collective>(&step))
      sizes.push_back(collective->bytes.value);
  EXPECT_THAT(sizes, ElementsAre(256 * 64, 2 * 256 * 64, 256 * 64, 2 * 256 * 64));
}

// ---- 16-bit gradients -----------------------------------------------------------------------

// Reduced in 2 bytes; the weight gradient reads and writes 2 instead of 4.
TEST(GradientsIn16Bits, HalveAccumulationAndReduction) {
  ShardShape shape = shard({.dtype = Dtype::kBf16});
  shape.precision.gradients = Dtype::kBf16;
  EXPECT_EQ(kernels_of(model(), kQuery, shape, Phase::kBackwardWeight).at(0).memory_traffic,
            Bytes(2 * 2 * kX + 4 * kW));
  Lowered lowered{.strategy = strategy_of({.data = 2}, 1)};
  EXPECT_EQ(sum_of(lowered.graph(), CollectiveKind::kAllReduce, Axis::kData),
            Bytes(4 * kParameters + 4));  // and the norm
  lowered.strategy.precision.gradients = Dtype::kBf16;
  EXPECT_EQ(sum_of(lowered.graph(), CollectiveKind::kAllReduce, Axis::kData),
            Bytes(2 * kParameters + 4));
}

// Megatron-LM, docs on the distributed optimizer: bytes per parameter with fp16 parameters and
// gradients 20, sharded over d replicas 4 + 16 / d. Each update widens its gradients first: 46 + 2
// + 4 bytes of traffic, 2 less to clear.
TEST(GradientsIn16Bits, TakeThe20BytesOfMegatron) {
  Lowered lowered{.strategy = strategy_of({.data = 4}, 1)};
  lowered.strategy.precision.gradients = Dtype::kBf16;
  const auto state = [](const TaskGraph& graph) {
    const MemoryAmounts& held = graph.ranks[0].resident;
    return held[MemoryClass::kWeights] + held[MemoryClass::kGradients] +
           held[MemoryClass::kOptimizer];
  };
  EXPECT_EQ(state(lowered.graph()), Bytes(20 * kParameters));
  EXPECT_EQ(update_kernels(lowered.graph()).at(0).memory_traffic, Bytes(50 * kParameters));
  lowered.strategy.zero = 1;
  EXPECT_EQ(state(lowered.graph()), Bytes((4 + 16 / 4) * kParameters));
}

}  // namespace
}  // namespace meshwright
