// Output layers sharded over the pipeline ranks, on a tiny GPT: H = 64, V = 512, micro-batches of
// 2 x 128 = 256 tokens. On four ranks the padded vocabulary is 512, 128 words per rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/lowering/lower.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace testing_models;

constexpr std::int64_t kTokens = 256, kHidden = 64, kWords = 128, kRanks = 4;
constexpr std::int64_t kInput = kTokens * kHidden * 2;  // bf16

Strategy strategy_for(std::string_view schedule, std::int64_t microbatches = 8) {
  Strategy s = strategy_of({.pipeline = kRanks}, microbatches);
  s.schedule = std::string(schedule);
  return s;
}

TaskGraph lowered(std::string_view schedule, bool tied = false) {
  return lower(plan_of(strategy_for(schedule), 4), gpt({.blocks = 4, .tied = tied}),
               cluster_of(1, 4));
}

std::vector<std::int64_t> bytes_of_first(const TaskGraph& graph, Stream stream, int microbatch) {
  std::vector<std::int64_t> bytes;
  for (const Task& task : graph.tasks)
    if (task.rank == 0 && task.stream == stream && task.microbatch == microbatch)
      bytes.push_back(graph.works[task.work.index()].collective.bytes.value);
  return bytes;
}

/// Flops of all GEMMs in a work.
double products_of(const TaskGraph& graph, const Work& work) {
  double flops = 0;
  for (const WorkPartUse& use : work.parts)
    for (const Step& step : graph.parts[static_cast<std::size_t>(use.part)].steps)
      if (const auto* kernel = std::get_if<Kernel>(&step); kernel != nullptr)
        flops += use.count * (kernel->kind == KernelKind::kGemm ? kernel->flops.value : 0);
  return flops;
}

const Work& work_with_part(const TaskGraph& graph, std::string_view name) {
  for (const Work& work : graph.works)
    for (const WorkPartUse& use : work.parts)
      if (graph.parts[static_cast<std::size_t>(use.part)].name == name) return work;
  ADD_FAILURE() << name;
  return graph.works.front();
}

// Vocab-2: one all-reduce of 3 fp32 statistics per token and the bf16 gradient of the input.
// Vocab-1 and the interlaced schedule: one all-reduce for each.
TEST(ShardedOutputLayer, CommunicatesItsInputStatisticsAndGradient) {
  const std::int64_t statistics = kTokens * 3 * 4;
  const TaskGraph one = lowered("vocab-1f1b");
  EXPECT_THAT(bytes_of_first(one, Stream::kOutputInputs, 3), ElementsAre(kInput));
  EXPECT_THAT(bytes_of_first(one, Stream::kOutputReductions, 3), ElementsAre(statistics + kInput));
  for (const char* schedule : {"vocab-1-1f1b", "interlaced-1f1b"}) {
    const TaskGraph two = lowered(schedule);
    EXPECT_THAT(bytes_of_first(two, Stream::kOutputInputs, 3), ElementsAre(kInput));
    EXPECT_THAT(bytes_of_first(two, Stream::kOutputReductions, 3), ElementsAre(statistics, kInput));
  }
}

// A product of the shard has 2 x 256 x 64 x 128 flops. Vocab-2: logits and input gradient in S,
// weight gradient in T; Vocab-1: logits in S, both gradients in T.
TEST(ShardedOutputLayer, SplitsItsProductsBetweenSAndT) {
  const double product = 2.0 * kTokens * kHidden * kWords;
  const TaskGraph one = lowered("vocab-1f1b"), two = lowered("vocab-1-1f1b");
  EXPECT_DOUBLE_EQ(products_of(one, work_with_part(one, "head.S")), 2 * product);
  EXPECT_DOUBLE_EQ(products_of(one, work_with_part(one, "head.T")), product);
  EXPECT_DOUBLE_EQ(products_of(two, work_with_part(two, "head.S")), product);
  EXPECT_DOUBLE_EQ(products_of(two, work_with_part(two, "head.T")), 2 * product);
}

// fp32 logits of the shard and a copy of the input from S to T; Vocab-2 also the partial gradient
// of the input.
TEST(ShardedOutputLayer, HoldsLogitsOfItsShardFromSToT) {
  const TaskGraph one = lowered("vocab-1f1b"), two = lowered("vocab-1-1f1b");
  const Work& scores = work_with_part(one, "head.S");
  EXPECT_EQ(scores.acquired[MemoryClass::kLogits], Bytes(kTokens * kWords * 4));
  EXPECT_EQ(scores.acquired[MemoryClass::kActivations], Bytes(2 * kInput));
  EXPECT_EQ(work_with_part(one, "head.T").released, scores.acquired);
  EXPECT_EQ(work_with_part(two, "head.S").acquired[MemoryClass::kActivations], Bytes(kInput));
}

// A block has 49,984 parameters, the position table 128 x 64, the final norm 128; the token table
// and the logits 512 x 64 / 4 = 8,192 on every rank, a tied table once. 2 bytes each.
TEST(ShardedOutputLayer, ShardsTableAndLogitsOverAllRanks) {
  constexpr std::int64_t kBlock = 49'984, kShard = 8'192;
  for (const bool tied : {false, true}) {
    std::vector<std::int64_t> parameters;
    for (const RankInfo& rank : lowered("vocab-1f1b", tied).ranks)
      parameters.push_back(rank.resident[MemoryClass::kWeights].value / 2);
    const std::int64_t each = kBlock + (tied ? 1 : 2) * kShard;
    EXPECT_THAT(parameters, ElementsAre(each + 128 * 64, each, each, each + 128));
  }
}

/// Position in the graph of a compute task of the device, -1 if there is none.
std::ptrdiff_t compute_task(const TaskGraph& graph, int rank, WorkId work, int microbatch) {
  const auto found = std::find_if(graph.tasks.begin(), graph.tasks.end(), [&](const Task& task) {
    return task.rank == rank && task.work == work && task.microbatch == microbatch;
  });
  return found == graph.tasks.end() ? -1 : found - graph.tasks.begin();
}

std::vector<std::pair<Stream, int>> inputs_of(const TaskGraph& graph, std::ptrdiff_t task) {
  std::vector<std::pair<Stream, int>> inputs;
  for (const TaskId id : graph.dependencies_of(TaskId(static_cast<std::size_t>(task))))
    inputs.emplace_back(graph.tasks[id.index()].stream, graph.tasks[id.index()].microbatch);
  return inputs;
}

// The last stage's first backward waits for the barrier of micro-batch 0. In the interlaced
// schedule, the forward of device 0 after T0 waits for it too: its order is F0 F1 S0 T0 F2.
TEST(ShardedOutputLayer, BackwardWaitsForItsBarrier) {
  for (const char* schedule : {"vocab-1f1b", "vocab-1-1f1b", "interlaced-1f1b"}) {
    const TaskGraph graph = lowered(schedule);
    EXPECT_THAT(check_task_graph(graph), IsEmpty());
    const auto backward =
        std::find_if(graph.tasks.begin(), graph.tasks.end(), [](const Task& task) {
          return task.rank == kRanks - 1 && task.kind == TaskKind::kBackward;
        });
    EXPECT_THAT(inputs_of(graph, backward - graph.tasks.begin()),
                testing::Contains(std::pair(Stream::kOutputReductions, 0)))
        << schedule;
  }
}

TEST(ShardedOutputLayer, InterlacedPassesWaitForTheBarrier) {
  const TaskGraph graph = lowered("interlaced-1f1b");
  const auto first = std::find_if(graph.tasks.begin(), graph.tasks.end(), [](const Task& task) {
    return task.rank == 0 && task.kind == TaskKind::kForward;
  });
  const std::ptrdiff_t third = compute_task(graph, 0, first->work, 2);
  ASSERT_GE(third, 0);
  EXPECT_THAT(inputs_of(graph, third), ElementsAre(std::pair(Stream::kOutputReductions, 0)));
}

TEST(ShardedOutputLayer, RejectsOptionsThatSplitPasses) {
  Strategy s = strategy_for("vocab-1f1b");
  s.degrees.data = 2;
  s.global_batch *= 2;
  s.zero = 2;
  const ModelGraph model = gpt({.blocks = 4});
  const auto problems = check_plan(plan_of(s, 4), model, cluster_of(2, 4));
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems.front().what, testing::HasSubstr("cannot be combined with ZeRO 2 or 3"));
  s.zero = 1;
  EXPECT_THAT(check_plan(plan_of(s, 4), model, cluster_of(2, 4)), IsEmpty());
}

}  // namespace
}  // namespace meshwright
