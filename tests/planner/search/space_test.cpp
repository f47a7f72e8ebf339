#include "planner/search/space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

// One device, batch 4: micro-batches 1, 2, 4; one schedule; no ZeRO without replicas.
// Recomputation: none, some or all blocks, per operator as in torchtitan; of Megatron-LM's modules
// core_attn, layernorm, mlp, and layernorm with each of the others. 3 * 9 candidates.
TEST(SearchSpace, IsSmallOnOneDevice) {
  const SmallJob small(small_dense_model(), kPlenty, {1, 4, 512});
  const std::vector<Candidate> all = small.candidates();
  EXPECT_EQ(all.size(), 27u);
  for (const Candidate& candidate : all) EXPECT_EQ(candidate.pipeline.rule->name, "1f1b");
}

// On one device, orders differ in when gradients can be reduced: with replicas also the leanest
// schedule with split backward passes is searched.
TEST(SearchSpace, SplitsBackwardPassesOfReplicasWithoutPipeline) {
  SmallJob small(small_dense_model(), kPlenty, {2, 4, 512});
  small.fixed.tensor = small.fixed.context = small.fixed.pipeline = 1;
  std::set<std::string_view> names;
  for (const Candidate& candidate : small.candidates()) names.insert(candidate.pipeline.rule->name);
  EXPECT_EQ(names, (std::set<std::string_view>{"1f1b", "zb-h1"}));
}

// tp 2, pp 2, dp 2, 1f1b without recomputation, batch 8, so micro-batches 1, 2, 4. Sequence
// parallel or not, then with overlap or without: 3. ZeRO 0: no buckets or one of two rules; ZeRO 1:
// the same, two of them with overlapped gathers; ZeRO 2: with or without, for each; ZeRO 3: reshard
// or not: 3 + 5 + 6 + 2 = 16.
TEST(SearchSpace, CoversEveryCombinationOfWhatIsFree) {
  SmallJob small(small_dense_model(), kPlenty, {8, 8, 512});
  small.fixed.tensor = 2;
  small.fixed.pipeline = 2;
  small.fixed.context = 1;
  small.fixed.schedule = "1f1b";
  small.fixed.recompute = Recompute{};
  EXPECT_EQ(small.candidates().size(), 3u * 3u * 16u);
  small.fixed.zero = 1;
  EXPECT_EQ(small.candidates().size(), 3u * 3u * 5u);
}

// As in Megatron-LM, which ignores --sequence-parallel without tensor parallelism.
TEST(SearchSpace, HasSequenceParallelismWhereThereIsTensorParallelism) {
  SmallJob small(small_dense_model(), kPlenty, {4, 4, 512});
  small.fixed.sequence_parallel = small.fixed.tensor_overlap = true;
  std::set<int> sizes;
  for (const Candidate& candidate : small.candidates()) {
    const bool cut = candidate.layout.degrees.tensor > 1;
    EXPECT_EQ(candidate.layout.sequence_parallel, cut);
    EXPECT_EQ(candidate.layout.tensor_overlap, cut);
    sizes.insert(candidate.layout.degrees.tensor);
  }
  EXPECT_EQ(sizes, (std::set<int>{1, 2, 4}));
  small.fixed.tensor = 1;  // both were asked for: an error, for check_plan() to report
  for (const Candidate& candidate : small.candidates())
    EXPECT_TRUE(candidate.layout.sequence_parallel);
}

// Layouts are tried with 1F1B, which cannot overlap expert communication with another micro-batch.
TEST(SearchSpace, HasPipelinesWithExpertOverlap) {
  SmallJob small(small_expert_model(), kPlenty, {8, 16, 512});
  small.fixed.model_parallelism.routing.overlap = true;
  const std::vector<Candidate> all = small.candidates();
  int pipelines = 0;
  for (const Candidate& candidate : all) {
    if (candidate.layout.degrees.pipeline == 1) continue;
    EXPECT_NE(candidate.pipeline.rule->name, "1f1b");
    ++pipelines;
  }
  EXPECT_GT(pipelines, 0);
}

// 12 pipeline ranks alone would not fill nodes of 8 devices evenly.
TEST(SearchSpace, HasEveryPipelineSizeThatDividesTheDevices) {
  const ModelGraph model = model_from_config({.name = "deep", .where = "deep.json", .text = R"({
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 12,
    "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 8000,
    "max_position_embeddings": 2048})"});
  SmallJob small(model, kPlenty, {.gpus = 24, .global_batch = 24, .sequence_length = 512});
  small.fixed.schedule = "1f1b";
  std::set<int> sizes;
  for (const Candidate& candidate : small.space().candidates())
    sizes.insert(candidate.layout.degrees.pipeline);
  EXPECT_THAT(sizes, testing::ElementsAre(1, 2, 3, 4, 6, 8, 12));
}

TEST(SearchSpace, HoldsEveryCandidateOnce) {
  SmallJob small(small_expert_model(), kPlenty, {8, 16, 512});
  small.fixed.tensor = 2;
  std::vector<Candidate> sorted = small.space().candidates();
  std::int64_t counted = 0;
  const SearchSpace space = small.space();
  for (const SearchSpace::Branch& branch : space.branches)
    counted += space.candidates_below(branch);
  EXPECT_EQ(static_cast<std::int64_t>(sorted.size()), counted);
  for (const Candidate& candidate : sorted) EXPECT_EQ(rank_count(candidate.layout.degrees), 8);
  std::sort(sorted.begin(), sorted.end(), is_simpler);
  EXPECT_EQ(
      std::adjacent_find(sorted.begin(), sorted.end(),
                         [](const Candidate& a, const Candidate& b) { return !is_simpler(a, b); }),
      sorted.end());
}

TEST(SearchSpace, HasOnlySchedulesThatAreWorthSearchingUnlessAsked) {
  SmallJob small(small_dense_model(), kPlenty, {8, 16, 512});
  std::set<std::string_view> names;
  for (const Candidate& candidate : small.candidates(4000))
    names.insert(candidate.pipeline.rule->name);
  EXPECT_EQ(names.count("naive"), 0u);
  EXPECT_EQ(names.count("1f1b"), 1u);
  EXPECT_EQ(names.count("interleaved-1f1b"), 1u);
  small.fixed.schedule = "naive";
  for (const Candidate& candidate : small.candidates(4000))
    EXPECT_EQ(candidate.pipeline.rule->name, "naive");
}

TEST(SearchSpace, InterleavesOnlySeveralChunks) {
  const SmallJob small(small_dense_model(), kPlenty, {8, 16, 512});
  for (const Candidate& candidate : small.candidates(4000))
    if (candidate.pipeline.rule->name == "interleaved-1f1b") {
      EXPECT_GT(candidate.pipeline.chunks, 1);
    }
}

int largest_tensor_size(const std::string& cluster, const Goal& goal) {
  const SmallJob job(model_from_config(find_model("gpt3-175b")),  // 96 heads
                     cluster_from_toml(find_cluster(cluster)), goal);
  int largest = 0;
  for (const SearchSpace::Branch& branch : job.space().branches)
    largest = std::max(largest, branch.layout.degrees.tensor);
  return largest;
}

// Beyond a node only if a sequence has more ranks than a node, and over four nodes at most.
TEST(SearchSpace, KeepsTensorRanksInANodeUnlessThereAreFewSequences) {
  EXPECT_EQ(largest_tensor_size("dgx-a100", {64, 64, 2048}), 8);
  EXPECT_EQ(largest_tensor_size("dgx-a100", {64, 4, 2048}), 16);
  EXPECT_EQ(largest_tensor_size("dgx-a100", {512, 2, 2048}), 32);
}

TEST(SearchSpace, HasTensorRanksOnSeveralSmallNodes) {
  EXPECT_EQ(largest_tensor_size("gh200-single", {64, 64, 2048}), 8);
}

}  // namespace
}  // namespace meshwright
