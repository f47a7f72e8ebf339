// What a training program allocates beside the tensors of the model. One micro-batch is 2 sequences
// of 128 tokens; H = 64, 512 words: 131,072 logits, 16,384 hidden elements.
#include "core/trainer/trainer_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/lowering/lower.hpp"
#include "core/operators/attention.hpp"
#include "core/operators/local_parameters.hpp"
#include "core/operators/operators.hpp"
#include "core/operators/saved_activations.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr std::int64_t kLogits = 256 * 512;
constexpr std::int64_t kTokensTimesHidden = 256 * 64;

TaskGraph lowered_with(const TrainerMemory& memory, const Strategy& strategy,
                       const GptShape& shape = {.blocks = 2}) {
  return lower(plan_of(strategy, 2), gpt(shape), cluster_of(2, 4), {.memory = memory});
}

/// The pass of the last stage.
const Work& pass_of(const TaskGraph& graph, TaskKind kind) {
  const Work* last = nullptr;
  for (const Work& work : graph.works)
    if (work.kind == kind && !work.parts.empty()) last = &work;
  return *last;
}

MemoryAmounts amounts_of(Bytes logits, Bytes working, Bytes gradients) {
  MemoryAmounts amounts;
  amounts[MemoryClass::kLogits] = logits;
  amounts[MemoryClass::kWorking] = working;
  amounts[MemoryClass::kGradients] = gradients;
  return amounts;
}

// Eager cross entropy on logits cast to fp32: 4 + 4 + 2 bytes forward; 4 + 2 kept; backward the
// log-softmax, its gradient and theirs, 12 + 2.
TEST(LossMemory, CountsCopiesOfTheLogits) {
  TrainerMemory memory;
  memory.loss = {.forward = {.fp32 = 2, .stored = 1},
                 .kept = {.fp32 = 1, .stored = 1},
                 .backward = {.fp32 = 3, .stored = 1}};
  const TaskGraph graph = lowered_with(memory, strategy_of({}, 1));
  const Work& forward = pass_of(graph, TaskKind::kForward);
  EXPECT_EQ(forward.acquired[MemoryClass::kLogits], Bytes(6 * kLogits));
  EXPECT_EQ(forward.transient[MemoryClass::kLogits], Bytes((10 - 6) * kLogits));
  const Work& backward = pass_of(graph, TaskKind::kBackward);
  EXPECT_EQ(backward.transient[MemoryClass::kLogits], Bytes((14 - 6) * kLogits));
  EXPECT_EQ(backward.released[MemoryClass::kLogits], Bytes(6 * kLogits));
}

TEST(LossMemory, HasItsOwnCopiesWhereWordsAreSharded) {
  TrainerMemory memory;
  memory.loss.kept = {.fp32 = 9, .stored = 9};
  memory.sharded_loss.kept = {.fp32 = 0, .stored = 1};
  const TaskGraph graph = lowered_with(memory, strategy_of({.tensor = 2}, 1));
  EXPECT_EQ(pass_of(graph, TaskKind::kForward).acquired[MemoryClass::kLogits],
            Bytes(2 * kLogits / 2));
}

// Working set of a block: twice its largest tensor, 256 tokens * 256 * 2 bytes = 131,072.
TEST(BackwardPeak, AddsHeadAndBlocksByDefault) {
  const TaskGraph graph = lowered_with({}, strategy_of({}, 1));
  EXPECT_EQ(pass_of(graph, TaskKind::kBackward).transient,
            amounts_of(Bytes(2 * kLogits), Bytes(2 * 131'072), Bytes(0)));
}

// Kept: 4 bytes a logit, 524,288. Loss: 262,144 more. Head: 2 bytes a logit instead of 4, and
// 32,768 for the gradient of its input. Blocks: 262,144 for 524,288.
TEST(BackwardPeak, IsAtTheLossIfItNeedsMost) {
  TrainerMemory memory;
  memory.frees_logits_before_blocks = true;
  const TaskGraph graph = lowered_with(memory, strategy_of({}, 1));
  EXPECT_EQ(pass_of(graph, TaskKind::kBackward).transient,
            amounts_of(Bytes(262'144), Bytes(0), Bytes(0)));
}

// With 128 words 131,072 bytes are kept: the loss needs 65,536 more, the blocks 131,072 more.
TEST(BackwardPeak, IsInTheBlocksIfTheyNeedMoreThanTheLogitsFree) {
  TrainerMemory memory;
  memory.frees_logits_before_blocks = true;
  const TaskGraph graph =
      lowered_with(memory, strategy_of({}, 1), {.blocks = 2, .vocabulary = 128});
  EXPECT_EQ(pass_of(graph, TaskKind::kBackward).transient,
            amounts_of(Bytes(-131'072), Bytes(262'144), Bytes(0)));
}

// A loss that overwrites 16-bit logits needs nothing. Then the head holds the gradients of its
// weights, 64 * 512 * 2 = 65,536, and of its input, 32,768.
TEST(BackwardPeak, IsAtTheHeadWithTemporaryWeightGradients) {
  TrainerMemory memory;
  memory.frees_logits_before_blocks = true;
  memory.weight_gradients = WeightGradientMemory::kTemporary;
  constexpr LossCopies kOverwritten{.fp32 = 0, .stored = 1};
  memory.loss = {kOverwritten, kOverwritten, kOverwritten};
  const TaskGraph graph = lowered_with(memory, strategy_of({}, 1));
  EXPECT_EQ(pass_of(graph, TaskKind::kBackward).transient,
            amounts_of(Bytes(0), Bytes(32'768), Bytes(65'536)));
}

// Distinct shapes of a block: 64 x 64 (query, key, value, projection), 64 x 256, 256 x 64.
TEST(WeightGradients, AreCachedOncePerShape) {
  const auto gradients = [](WeightGradientMemory how) {
    TrainerMemory memory;
    memory.weight_gradients = how;
    return lowered_with(memory, strategy_of({}, 1)).ranks[0].resident[MemoryClass::kGradients];
  };
  EXPECT_EQ(
      gradients(WeightGradientMemory::kCachedByShape) - gradients(WeightGradientMemory::kNone),
      Bytes(2 * (4'096 + 16'384 + 16'384)));
  EXPECT_EQ(gradients(WeightGradientMemory::kTemporary), gradients(WeightGradientMemory::kNone));
}

// 2 blocks of 49,984, tables 640 * 64, head 128 + 512 * 64.
TEST(GradientBuffers, HaveTheBytesOfTheTrainer) {
  TrainerMemory memory;
  memory.bf16_gradient_bytes = 6;
  const std::int64_t parameters = 2 * 49'984 + 640 * 64 + 128 + 512 * 64;
  EXPECT_EQ(lowered_with(memory, strategy_of({}, 1)).ranks[0].resident[MemoryClass::kGradients],
            Bytes(6 * parameters));
}

// An activation of 256 tokens * 64 * 2 bytes; the last stage sends none.
TEST(SentActivations, AreHeldUntilTheirGradientArrives) {
  TrainerMemory memory;
  memory.holds_sent_activations = true;
  const TaskGraph graph = lowered_with(memory, strategy_of({.pipeline = 2}, 2));
  std::vector<Bytes> held;
  for (const Work& work : graph.works)
    if (work.kind == TaskKind::kForward && !work.parts.empty())
      held.push_back(work.acquired[MemoryClass::kCommunication]);
  EXPECT_EQ(held, (std::vector{Bytes(2 * kTokensTimesHidden), Bytes(0)}));
}

// Communicators of a rank: tensor, data, pipeline and the whole job.
TEST(ReservedMemory, IsTheContextAndTheCommunicators) {
  TrainerMemory memory;
  memory.communicator = Bytes(1'000);
  const Strategy strategy = strategy_of({.data = 2, .pipeline = 2, .tensor = 2}, 2);
  const auto reserved = [&] {
    return lowered_with(memory, strategy).ranks[0].resident[MemoryClass::kReserved];
  };
  EXPECT_EQ(reserved(), Bytes(std::int64_t{1} << 30));  // the device's figure
  memory.context = Bytes(500'000);
  EXPECT_EQ(reserved(), Bytes(504'000));
}

// FSDP: 4 + 8 bytes per parameter and rank instead of 2 + 12.
TEST(FullySharded, HoldsFp32ShardsWithoutMasterCopies) {
  Strategy strategy = strategy_of({.data = 4}, 1);
  strategy.zero = 3;
  TrainerMemory memory;
  memory.has_fp32_shards = true;
  const MemoryAmounts sharded = lowered_with(memory, strategy).ranks[0].resident;
  const std::int64_t share = (2 * 49'984 + 640 * 64 + 128 + 512 * 64) / 4;
  EXPECT_EQ(sharded[MemoryClass::kWeights], Bytes(4 * share));
  EXPECT_EQ(sharded[MemoryClass::kOptimizer], Bytes(8 * share));
  EXPECT_EQ(sharded[MemoryClass::kGradients], Bytes(4 * share));
}

/// Most gathered parameters of a rank.
Bytes most_gathered(const TrainerMemory& memory) {
  Strategy strategy = strategy_of({.data = 4}, 1);
  strategy.zero = 3;
  const TaskGraph graph = lowered_with(memory, strategy);
  Bytes held, most;
  for (const Task& task : graph.tasks) {
    if (task.stream != Stream::kCompute) continue;
    const Work& work = graph.works[task.work.index()];
    held += work.acquired[MemoryClass::kCommunication];
    most = std::max(most, held);
    held -= work.released[MemoryClass::kCommunication];
  }
  return most;
}

// In 16 bits: embedding 81,920, block 99,968, head 65,792. One unit is gathered ahead, so that two
// blocks are the most; the embedding is held beside them.
TEST(FullySharded, KeepsTheEndsGathered) {
  EXPECT_EQ(most_gathered({}), Bytes(2 * 99'968));
  TrainerMemory memory;
  memory.keeps_ends_gathered = true;
  EXPECT_EQ(most_gathered(memory), Bytes(81'920 + 2 * 99'968));
}

// The limit counts all gathered units, so a block above it is not gathered ahead of its use.
TEST(FullySharded, GathersAtMostSoManyParameters) {
  TrainerMemory memory;
  memory.most_gathered_parameters = 10'000;
  EXPECT_EQ(most_gathered(memory), Bytes(2 * 10'000));
}

// 256 tokens * 2 experts * 64 * 2 bytes.
TEST(KeptByTrainer, LeavesOutTheOutputsOfExperts) {
  const ModelGraph model = mixture(1);
  const ShardShape shard{.sequences = 2, .sequence_length = 128, .degrees = {}};
  TrainerMemory memory;
  memory.weighs_expert_activations = true;
  const auto kept = [&](const char* recompute, const TrainerMemory& trainer) {
    return kept_activation_bytes(model, LayerId(1), shard, *recompute_from_text(recompute),
                                 trainer);
  };
  EXPECT_EQ(kept("none", {}) - kept("none", memory), Bytes(65'536));
  EXPECT_EQ(kept("modules:layernorm", {}) - kept("modules:layernorm", memory), Bytes(65'536));
  for (const char* without_them : {"full", "torch-selective"})
    EXPECT_EQ(kept(without_them, {}), kept(without_them, memory)) << without_them;
}

TEST(WeightMatrices, AreShardedAsTheirOperators) {
  ShardShape shard;
  shard.degrees.tensor = 2;
  const WeightMatrix square{64, 32};
  EXPECT_EQ(weight_matrices(gpt({.blocks = 1}), LayerId(1), shard),
            (std::vector<WeightMatrix>{square, square, square, {32, 64}, {64, 128}, {128, 64}}));
  ShardShape experts;
  experts.degrees.data = experts.degrees.expert = 2;
  EXPECT_EQ(weight_matrices(mixture(1), LayerId(1), experts),
            (std::vector<WeightMatrix>{{64, 128, 2}, {128, 64, 2}}));
}

}  // namespace
}  // namespace meshwright
