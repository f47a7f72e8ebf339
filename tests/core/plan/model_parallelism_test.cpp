// Tensor, context and expert parallelism: kernels, bytes and memory of single ranks by hand.
#include "core/plan/model_parallelism.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/lowering/lower.hpp"
#include "core/plan/job_groups.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

const WorkPart& part_named(const TaskGraph& graph, std::string_view name) {
  const auto found = std::find_if(graph.parts.begin(), graph.parts.end(),
                                  [&](const WorkPart& part) { return part.name == name; });
  EXPECT_NE(found, graph.parts.end()) << name;
  return *found;
}
std::vector<Collective> collectives_in(const TaskGraph& graph, std::string_view part) {
  std::vector<Collective> found;
  for (const Step& step : part_named(graph, part).steps)
    if (const auto* c = std::get_if<Collective>(&step)) found.push_back(*c);
  return found;
}
std::vector<Kernel> kernels_in(const TaskGraph& graph, std::string_view part, KernelKind kind) {
  std::vector<Kernel> found;
  for (const Step& step : part_named(graph, part).steps)
    if (const auto* k = std::get_if<Kernel>(&step); k != nullptr && k->kind == kind)
      found.push_back(*k);
  return found;
}
std::vector<std::int64_t> shape_of(const Kernel& k) { return {k.batch, k.m, k.n, k.k}; }

// ---- tensor parallelism -----------------------------------------------------------------------

/// One block: y = relu(x W1 + b1) W2 + b2, 4 -> 8 -> 4, W1 cut by columns and W2 by rows.
ModelGraph two_linears() {
  ModelGraphBuilder builder("two-linears", "mlp");
  testing_models::detail::BlockWriter w{builder, 4};
  const TensorId x = w.activation(4);
  builder.begin_layer(LayerKind::kBlock);
  const TensorId up = w.linear(x, 4, 8, LinearCut::kColumn);
  w.linear(w.gelu(up, 8), 8, 4, LinearCut::kRow);
  builder.end_layer(4);
  return builder.finish(0, false);
}

// Three tokens in bf16 over two ranks. Each rank has 4 of the 8 columns of W1 and the 4 rows of W2
// that go with them: products [3, 4] x [4, 4] twice. Forward the two halves of y are summed, 3 * 4
// values of 2 bytes; backward the two halves of the gradient of x. Parameters: 16 + 4 (half of b1)
// + 16 + 4 (b2, whole on both).
TEST(TensorParallelism, SplitsTwoLinearLayersOverTwoRanks) {
  const ModelGraph model = two_linears();
  Strategy s;
  s.degrees.tensor = 2;
  s.sequence_length = 3;
  const TaskGraph graph = lower({s, {1}}, model, cluster_of(1, 2));
  const auto forward = kernels_in(graph, "block.F", KernelKind::kGemm);
  ASSERT_EQ(forward.size(), 2u);
  EXPECT_THAT(shape_of(forward[0]), ElementsAre(1, 3, 4, 4));
  EXPECT_THAT(shape_of(forward[1]), ElementsAre(1, 3, 4, 4));
  const auto backward = kernels_in(graph, "block.B", KernelKind::kGemm);
  ASSERT_EQ(backward.size(), 4u);  // two input and two weight gradients
  for (const char* part : {"block.F", "block.B"}) {
    const auto sums = collectives_in(graph, part);
    ASSERT_EQ(sums.size(), 1u) << part;
    EXPECT_EQ(sums[0].kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(sums[0].bytes, Bytes(24));
    EXPECT_EQ(sums[0].group, (GroupShape{.ranks = 2, .nodes = 1, .groups_per_node = 1}));
  }
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kWeights], Bytes(2 * 40));
}

// The same with the sequence cut: 3 tokens do not halve, 4 do. What was summed is scattered, what
// was whole is gathered; b2 works on 2 of the 4 tokens, so its 4 gradients are summed in fp32.
TEST(TensorParallelism, SumsGradientsOfParametersThatSawAPartOfTheTokens) {
  Strategy s;
  s.degrees.tensor = 2;
  s.sequence_length = 4;
  s.sequence_parallel = true;
  const TaskGraph graph = lower({s, {1}}, two_linears(), cluster_of(1, 2));
  std::vector<Collective> at_the_end;
  for (const Work& work : graph.works)
    if (work.kind == TaskKind::kCollective && work.collective.axis == Axis::kTensor)
      at_the_end.push_back(work.collective);
  ASSERT_EQ(at_the_end.size(), 1u);
  EXPECT_EQ(at_the_end[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(at_the_end[0].bytes, Bytes(16));
}

// Tiny GPT: norms 4 * 64 and biases behind row cuts 2 * 64 in each of 4 blocks, positions 128 * 64
// and the last norm 128: 9,856 gradients of 4 bytes. None without sequence parallelism.
TEST(TensorParallelism, SumsNormsBiasesAndPositionsUnderSequenceParallelism) {
  const auto bytes = [](bool sequence_parallel) {
    Strategy s = strategy_of({.tensor = 2}, 1);
    s.sequence_parallel = sequence_parallel;
    Bytes sum;
    for (const Work& work : lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 2)).works)
      if (work.kind == TaskKind::kCollective && work.collective.axis == Axis::kTensor)
        sum += work.collective.bytes;
    return sum;
  };
  EXPECT_EQ(bytes(true), Bytes(4 * 9'856));
  EXPECT_EQ(bytes(false), Bytes(0));
}

/// A block of grouped attention: 4 heads of 16, 2 key/value heads, one projection for all three.
ModelGraph grouped_attention() {
  ModelGraphBuilder builder("grouped", "llama");
  testing_models::detail::BlockWriter w{builder, 64};
  const TensorId x = w.activation(64);
  builder.begin_layer(LayerKind::kBlock);
  const auto heads = [&](std::int64_t width) {
    return builder.add_activation("h", {.width = width, .cut = ActivationCut::kFeatures});
  };
  const TensorId q = heads(64), k = heads(32), v = heads(32), context = heads(64);
  builder.add({"qkv",
               Linear{64, 128, false, LinearCut::kColumn},
               {x},
               {q, k, v},
               {w.parameter({64, 128}, ParameterCut::kTensor)},
               {x}});
  builder.add({"core",
               Attention{.heads = 4,
                         .key_value_heads = 2,
                         .key_size = 16,
                         .value_size = 16,
                         .window = {},
                         .dropout = 0},
               {q, k, v},
               {context},
               {},
               {q, k, v}});
  w.linear(context, 64, 64, LinearCut::kRow);
  builder.end_layer(64);
  return builder.finish(0, false);
}

// 4 tensor ranks, 2 key/value heads: each rank has one query head and a copy of one key and one
// value head, 16 + 16 + 16 = 48 columns of the projection instead of 128 / 4 = 32. Weights: 64 * 48
// + 64 * 16 + 64 (bias). The copies' gradients, 64 * 32, are summed in pairs of ranks. Kept: input
// 64 (whole), Q, K, V 48, context 16, of 128 tokens in bf16, and a row sum for one head.
TEST(TensorParallelism, CopiesKeyValueHeadsWhereRanksAreMore) {
  const ModelGraph model = grouped_attention();
  Strategy s = strategy_of({.tensor = 4}, 1);
  s.micro_batch = 1;
  s.global_batch = 1;
  const Plan plan{s, {1}};
  EXPECT_THAT(check_plan(plan, model, cluster_of(1, 4)), IsEmpty());
  const TaskGraph graph = lower(plan, model, cluster_of(1, 4));
  EXPECT_THAT(shape_of(kernels_in(graph, "block.F", KernelKind::kGemm)[0]),
              ElementsAre(1, 128, 48, 64));
  EXPECT_EQ(graph.ranks[0].resident[MemoryClass::kWeights], Bytes(2 * (3'072 + 1'024 + 64)));
  EXPECT_EQ(graph.works[0].acquired[MemoryClass::kActivations],
            Bytes(128 * (64 + 48 + 16) * 2 + 128 * 4));
  const auto sum = std::find_if(graph.works.begin(), graph.works.end(), [](const Work& work) {
    return work.kind == TaskKind::kCollective && work.collective.axis == Axis::kTensor;
  });
  ASSERT_NE(sum, graph.works.end());
  EXPECT_EQ(sum->collective.bytes, Bytes(4 * 64 * 32));
  EXPECT_EQ(sum->collective.group, (GroupShape{.ranks = 2, .nodes = 1, .groups_per_node = 1}));
  EXPECT_THAT(check_task_graph(lower(plan, model, cluster_of(1, 4), {.ranks = RankSet::kAll})),
              IsEmpty());
}

// Two ranks, so two pieces. Forward: gathers in front of the first product that reads, scatters
// behind row cuts. Backward: gathers in front of row cuts' input gradients; the second gather of an
// input hides behind the input gradient in front of it, the scatter behind the weight gradient.
TEST(TensorParallelism, RunsBesideProductsIfToldTo) {
  Strategy s = strategy_of({.tensor = 2}, 1);
  s.sequence_parallel = true;
  s.model_parallelism.tensor_overlap = true;
  const TaskGraph graph = lower(plan_of(s, 2), gpt({.blocks = 2}), cluster_of(1, 2));
  const auto overlaps = [&](std::string_view part) {
    std::vector<std::pair<int, int>> found;
    for (const Collective& c : collectives_in(graph, part))
      found.emplace_back(c.overlap.kernels, c.overlap.pieces);
    return found;
  };
  using Pair = std::pair<int, int>;
  EXPECT_THAT(overlaps("block.F"), ElementsAre(Pair(1, 2), Pair(-1, 2), Pair(1, 2), Pair(-1, 2)));
  EXPECT_THAT(overlaps("block.B"), ElementsAre(Pair(1, 2), Pair(-1, 0), Pair(1, 0), Pair(1, 2),
                                               Pair(-1, 0), Pair(1, 0)));
  EXPECT_THAT(overlaps("head.F"), ElementsAre(Pair(0, 0), Pair(0, 0), Pair(0, 0)));
  // 256 rows in two pieces: each reads the weights, 64 x 128 of the local up projection.
  const Kernel up = kernels_in(graph, "block.F", KernelKind::kGemm)[4];
  EXPECT_EQ(up.pieces, 2);
  EXPECT_EQ(up.memory_traffic, Bytes(2 * (256 * 64 + 256 * 128 + 2 * 64 * 128)));
}

// ---- context parallelism ----------------------------------------------------------------------

TaskGraph lower_context(ContextAlgorithm algorithm, int ranks) {
  Strategy s = strategy_of({.context = ranks}, 1);
  s.model_parallelism.context = algorithm;
  return lower(plan_of(s, 2), gpt({.blocks = 2}), cluster_of(2, 4));
}

struct Sent {
  CollectiveKind kind;
  std::int64_t bytes;
  int rounds, kernels, pieces;
  friend bool operator==(const Sent&, const Sent&) = default;
};
std::vector<Sent> sent_in(const TaskGraph& graph, std::string_view part) {
  std::vector<Sent> sent;
  for (const Collective& c : collectives_in(graph, part))
    sent.push_back({c.kind, c.bytes.value, c.rounds, c.overlap.kernels, c.overlap.pieces});
  return sent;
}

// 2 sequences of 128 tokens over 4 ranks: 64 tokens each; Q and O 64 * 64 * 2 = 8,192 bytes, K and
// V together 16,384.
TEST(ContextParallelism, SendsWhatEachAlgorithmNeeds) {
  using enum CollectiveKind;
  const TaskGraph gather = lower_context(ContextAlgorithm::kAllGather, 4);
  EXPECT_THAT(sent_in(gather, "block.F"), ElementsAre(Sent{kAllGather, 65'536, 1, 0, 0}));
  EXPECT_THAT(sent_in(gather, "block.B"), ElementsAre(Sent{kAllGather, 65'536, 1, 0, 0},
                                                      Sent{kReduceScatter, 65'536, 1, 0, 0}));
  const TaskGraph ring = lower_context(ContextAlgorithm::kRing, 4);
  EXPECT_THAT(sent_in(ring, "block.F"), ElementsAre(Sent{kRingExchange, 16'384, 3, 1, 4}));
  EXPECT_THAT(sent_in(ring, "block.B"), ElementsAre(Sent{kRingExchange, 32'768, 3, 1, 4},
                                                    Sent{kRingExchange, 16'384, 1, 0, 0}));
  const TaskGraph heads = lower_context(ContextAlgorithm::kAllToAll, 4);
  EXPECT_THAT(sent_in(heads, "block.F"),
              ElementsAre(Sent{kAllToAll, 24'576, 1, 0, 0}, Sent{kAllToAll, 8'192, 1, 0, 0}));
  EXPECT_THAT(sent_in(heads, "block.B"),
              ElementsAre(Sent{kAllToAll, 8'192, 1, 0, 0}, Sent{kAllToAll, 24'576, 1, 0, 0}));
}

// All do the same arithmetic: a quarter of 2 sequences * 4 heads * 128 * 64 keys * 4 * 16. Round a
// ring in 4 pieces, queries and output touched by each: (4 Q + KV + 7 O) of 8,192, 65,536 and 8,192
// bytes; all-to-all with all 128 queries of one head.
TEST(ContextParallelism, CutsTheAttentionOfEachRank) {
  const auto kernel = [](ContextAlgorithm algorithm) {
    return kernels_in(lower_context(algorithm, 4), "block.F", KernelKind::kAttention).at(0);
  };
  const Kernel gather = kernel(ContextAlgorithm::kAllGather);
  const Kernel ring = kernel(ContextAlgorithm::kRing);
  const Kernel heads = kernel(ContextAlgorithm::kAllToAll);
  for (const Kernel& k : {gather, ring, heads}) EXPECT_EQ(k.flops, Flops(4'194'304.0 / 4));
  EXPECT_THAT(shape_of(gather), ElementsAre(8, 32, 128, 16));
  EXPECT_THAT(shape_of(heads), ElementsAre(2, 128, 128, 16));
  EXPECT_EQ(ring.pieces, 4);
  EXPECT_EQ(ring.memory_traffic, Bytes(4 * 8'192 + 65'536 + 7 * 8'192));
}

// Gathered: 4 KV of 16,384 bytes, backward with as much of gradients. A ring holds the block at
// work and the one that arrives, whatever its length. All-to-all: Q, K and V on their way.
TEST(ContextParallelism, HoldsBuffersBesideTheActivations) {
  const auto held = [](ContextAlgorithm algorithm, int ranks) {
    const TaskGraph graph = lower_context(algorithm, ranks);
    return std::pair(graph.works[0].transient[MemoryClass::kCommunication].value,
                     graph.works[1].transient[MemoryClass::kCommunication].value);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(held(ContextAlgorithm::kAllGather, 4), Pair(65'536, 131'072));
  EXPECT_EQ(held(ContextAlgorithm::kRing, 4), Pair(32'768, 65'536));
  EXPECT_EQ(held(ContextAlgorithm::kRing, 2), Pair(65'536, 131'072));
  EXPECT_EQ(held(ContextAlgorithm::kAllToAll, 4), Pair(24'576, 24'576));
  EXPECT_EQ(held(ContextAlgorithm::kAllGather, 1), Pair(0, 0));
}

// ---- expert parallelism -----------------------------------------------------------------------

/// 256 tokens a rank, 2 of 4 experts each, 64 wide: 512 rows of 128 bytes.
TaskGraph lower_experts(const ExpertRouting& routing,
                        ParallelDegrees degrees = {.data = 4, .expert = 4}) {
  Strategy s = strategy_of(degrees, 1);
  s.model_parallelism.routing = routing;
  return lower(plan_of(s, 2), mixture(2), cluster_of(2, 2));
}
std::vector<std::int64_t> bytes_in(const TaskGraph& graph, std::string_view part) {
  std::vector<std::int64_t> bytes;
  for (const Collective& c : collectives_in(graph, part)) bytes.push_back(c.bytes.value);
  return bytes;
}

TEST(ExpertParallelism, SpreadsRowsEvenlyIfNothingIsSaid) {
  const TaskGraph graph = lower_experts({});
  EXPECT_THAT(bytes_in(graph, "block.F"), ElementsAre(65'536, 65'536));
  EXPECT_THAT(shape_of(kernels_in(graph, "block.F", KernelKind::kGroupedGemm)[0]),
              ElementsAre(1, 512, 128, 64));
}

// A factor of 1.3 on 128 rows an expert: 167 of 4 experts, 668 rows sent, computed and kept.
TEST(ExpertParallelism, FillsBuffersUpToTheCapacity) {
  const TaskGraph graph = lower_experts({.capacity = 1.3});
  EXPECT_THAT(bytes_in(graph, "block.F"), ElementsAre(668 * 128, 668 * 128));
  EXPECT_THAT(shape_of(kernels_in(graph, "block.F", KernelKind::kGroupedGemm)[0]),
              ElementsAre(1, 668, 128, 64));
  // Kept by a block and routed: rows 64, up and activation 128 each, down 64.
  const std::int64_t more = graph.works[0].acquired[MemoryClass::kActivations].value -
                            lower_experts({}).works[0].acquired[MemoryClass::kActivations].value;
  EXPECT_EQ(more, 2 * (668 - 512) * (64 + 128 + 128 + 64) * 2);
}

// The busiest of 4 expert ranks has 1.5 times the mean; with all experts on one rank none is
// busier.
TEST(ExpertParallelism, WaitsForTheBusiestRank) {
  const TaskGraph graph = lower_experts({.imbalance = 1.5});
  EXPECT_THAT(bytes_in(graph, "block.F"), ElementsAre(98'304, 98'304));
  EXPECT_THAT(shape_of(kernels_in(graph, "block.F", KernelKind::kGroupedGemm)[0]),
              ElementsAre(1, 768, 128, 64));
  EXPECT_THAT(shape_of(kernels_in(lower_experts({.imbalance = 1.5}, {.data = 4}), "block.F",
                                  KernelKind::kGroupedGemm)[0]),
              ElementsAre(4, 128, 128, 64));
}

// Outward a row is 64 bytes and one scale of 4; back it is 128 bytes.
TEST(ExpertParallelism, DispatchesInFp8AndCombinesInFull) {
  const TaskGraph graph = lower_experts({.fp8_dispatch = true});
  EXPECT_THAT(bytes_in(graph, "block.F"), ElementsAre(512 * 68, 512 * 128));
  EXPECT_THAT(bytes_in(graph, "block.B"), ElementsAre(512 * 68, 512 * 128));
}

TEST(ExpertParallelism, OverlapsWithAnotherMicrobatch) {
  for (const bool overlap : {false, true})
    for (const char* part : {"block.F", "block.B"})
      for (const Collective& c : collectives_in(lower_experts({.overlap = overlap}), part))
        EXPECT_EQ(c.overlap, (Overlap{.other_microbatch = overlap}));
}

// 4 expert ranks on 2 nodes, experts of a token on one node: half of the 256 tokens cross, once.
TEST(ExpertParallelism, CrossesTheNetworkOnceANode) {
  const TaskGraph graph = lower_experts({.node_limit = 1});
  for (const Collective& c : collectives_in(graph, "block.F")) {
    EXPECT_EQ(c.group, (GroupShape{.ranks = 4, .nodes = 2, .groups_per_node = 1}));
    EXPECT_EQ(c.sent_across_nodes, Bytes(128 * 128));
  }
  for (const Collective& c : collectives_in(lower_experts({}), "block.F"))
    EXPECT_EQ(c.sent_across_nodes, Bytes(0));
}

// 16 ranks of a stage as tp 2 x dp 8 for dense layers, and as etp 1 x ep 8 x 2 replicas for
// experts: expert ranks are neighbors, on two nodes of 4; the replicas of an expert are 8 apart.
TEST(ExpertParallelism, FoldsExpertRanksIntoTheStage) {
  Strategy s = strategy_of({.data = 8, .tensor = 2, .expert = 8}, 1);
  const JobGroups groups = job_groups_of(s, cluster_of(4, 4));
  EXPECT_EQ(groups.expert, (GroupShape{.ranks = 8, .nodes = 2, .groups_per_node = 1}));
  EXPECT_EQ(groups.expert_data, (GroupShape{.ranks = 2, .nodes = 2, .groups_per_node = 4}));
  EXPECT_EQ(groups.dense_data, (GroupShape{.ranks = 8, .nodes = 4, .groups_per_node = 2}));
  EXPECT_EQ(groups.expert_stride, 8);
  EXPECT_EQ(groups.dense_stride, 2);
}

}  // namespace
}  // namespace meshwright
