#include "planner/search/stage_partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "planner/search/unequal_stages.hpp"

namespace meshwright {
namespace {

using testing::Each;
using testing::ElementsAre;

LayerTimes uniform(int blocks, std::int64_t block, std::int64_t embedding, std::int64_t head) {
  return {.embedding = Ticks(embedding),
          .head = Ticks(head),
          .blocks = std::vector<Ticks>(static_cast<std::size_t>(blocks), Ticks(block))};
}

TEST(CutBlocks, GivesEveryStageTheSameWhereThatIsAsGood) {
  EXPECT_THAT(cut_blocks(uniform(96, 10, 0, 0), 8), Each(12));
  EXPECT_THAT(cut_blocks(uniform(6, 10, 3, 0), 1), ElementsAre(6));
  // The head makes the last stage longer, but taking a block off it would make another one 3
  // blocks long (30): equal is 2 * 10 + 4 = 24.
  EXPECT_THAT(cut_blocks(uniform(8, 10, 1, 4), 4), ElementsAre(2, 2, 2, 2));
}

TEST(CutBlocks, TakesBlocksFromStagesWithHeavyEmbeddingAndHead) {
  // 10 blocks of 10, embedding 10, head 20: 130 over 4 stages. 40 is reached only by 3 with the
  // embedding, 2 with the head, and 5 more between; no stage limit below 40 leaves room for 13
  // units of 10 over 4 stages (4 * 30 = 120 < 130).
  const std::vector<int> cut = cut_blocks(uniform(10, 10, 10, 20), 4);
  EXPECT_EQ(slowest_stage(uniform(10, 10, 10, 20), cut), Ticks(40));
  EXPECT_THAT(cut, ElementsAre(2, 3, 3, 2));
}

TEST(CutBlocks, CutsLlama405BLikeItsAuthors) {
  // 126 blocks on 16 stages, a head of 0.66 blocks: 14 stages of 8, and 7 on the first and last.
  const std::vector<int> cut = cut_blocks(uniform(126, 100, 1, 66), 16);
  EXPECT_EQ(cut.front(), 7);
  EXPECT_EQ(cut.back(), 7);
  EXPECT_EQ(std::accumulate(cut.begin(), cut.end(), 0), 126);
  // 128 stages: one block each, none beside the embedding and the head.
  const std::vector<int> fine = cut_blocks(uniform(126, 100, 1, 66), 128);
  EXPECT_EQ(fine.front(), 0);
  EXPECT_EQ(fine.back(), 0);
  EXPECT_THAT(std::vector<int>(fine.begin() + 1, fine.end() - 1), Each(1));
}

TEST(CutBlocks, GivesLightFirstBlocksCompany) {
  // 3 light blocks (4) in front of 7 heavy ones (10), no head: 82 over 3 stages. At most 30 each:
  // 12 + 10 = 22, 30, 30.
  LayerTimes times = uniform(10, 10, 0, 0);
  for (std::size_t i = 0; i < 3; ++i) times.blocks[i] = Ticks(4);
  EXPECT_THAT(cut_blocks(times, 3), ElementsAre(4, 3, 3));
}

/// Visits every cut with at least one layer in each stage.
template <class Visit>
void for_each_cut(int blocks, int stages, std::vector<int>& cut, const Visit& visit) {
  const int stage = static_cast<int>(cut.size());
  if (stage == stages) {
    if (blocks == 0) visit(cut);
    return;
  }
  const bool outer = stage == 0 || stage == stages - 1;
  for (int count = outer ? 0 : 1; count <= blocks; ++count) {
    cut.push_back(count);
    for_each_cut(blocks - count, stages, cut, visit);
    cut.pop_back();
  }
}

std::int64_t sum_of_squares(const std::vector<int>& cut) {
  std::int64_t sum = 0;
  for (const int count : cut) sum += std::int64_t{count} * count;
  return sum;
}

/// No cut is faster, and none that is as fast is more even. True if `found` is one of the cuts.
template <class SlowestStage>
bool expect_best_of_all_cuts(const std::vector<int>& found, int blocks,
                             const SlowestStage& time_of) {
  const Ticks slowest = time_of(found);
  EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0), blocks);
  bool seen = false;
  std::vector<int> cut;
  for_each_cut(blocks, static_cast<int>(found.size()), cut, [&](const std::vector<int>& other) {
    seen = seen || other == found;
    const Ticks time = time_of(other);
    EXPECT_LE(slowest, time);
    if (time == slowest) {
      EXPECT_LE(sum_of_squares(found), sum_of_squares(other));
    }
  });
  return seen;
}

TEST(CutBlocks, IsNeverWorseThanAnyOtherCutOfASmallModel) {
  constexpr unsigned kSeed = 20210409;
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < 400; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " trial " << trial);
    const int blocks = static_cast<int>(random() % 9);
    const int stages = 1 + static_cast<int>(random() % static_cast<unsigned>(blocks + 2));
    LayerTimes times = uniform(blocks, 0, random() % 20, random() % 20);
    for (Ticks& block : times.blocks) block = Ticks(1 + random() % 12);

    const std::vector<int> found = cut_blocks(times, stages);
    EXPECT_EQ(found.size(), static_cast<std::size_t>(stages));
    EXPECT_TRUE(expect_best_of_all_cuts(
        found, blocks, [&](const std::vector<int>& cut) { return slowest_stage(times, cut); }));
  }
}

// Equal blocks take a shortcut.
TEST(CutBlocks, IsNeverWorseThanAnyOtherCutOfEqualBlocks) {
  for (int blocks = 0; blocks <= 8; ++blocks)
    for (int stages = 1; stages <= blocks + 2; ++stages)
      for (int embedding = 0; embedding <= 9; embedding += 3)
        for (int head = 0; head <= 14; head += 2) {
          SCOPED_TRACE(testing::Message() << blocks << " blocks, " << stages << " stages, "
                                          << embedding << " and " << head << " at the ends");
          const LayerTimes times = uniform(blocks, 4, embedding, head);
          EXPECT_TRUE(expect_best_of_all_cuts(
              cut_blocks(times, stages), blocks,
              [&](const std::vector<int>& cut) { return slowest_stage(times, cut); }));
        }
}

// The second device is half as fast: 8 blocks of 3 on the first and 4 of 6 on the second take 24.
TEST(CutBlocks, GivesSlowDevicesFewerBlocks) {
  UnequalStages stages{{uniform(12, 3, 0, 0), uniform(12, 6, 0, 0)}, {0, 1}};
  EXPECT_THAT(cut_blocks_for(stages), ElementsAre(8, 4));
  EXPECT_EQ(slowest_stage_of(stages, cut_blocks_for(stages)), Ticks(24));
  // At most 6 blocks on the first leave 6 to the second, which take 36.
  stages.most_of_kind = {6, 12};
  EXPECT_THAT(cut_blocks_for(stages), ElementsAre(6, 6));
  EXPECT_EQ(slowest_stage_of(stages, cut_blocks_for(stages)), Ticks(36));
}

// Blocks that take the same time have a shortcut.
TEST(CutBlocks, IsNeverWorseThanAnyOtherCutOverUnequalDevices) {
  constexpr unsigned kSeed = 20231105;
  std::mt19937 random(kSeed);
  const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
  for (int trial = 0; trial < 800; ++trial) {
    SCOPED_TRACE(testing::Message() << "seed " << kSeed << " trial " << trial);
    const bool alike = trial % 2 == 0;
    const int blocks = below(9), kinds = 1 + below(3);
    const int count = 1 + below(static_cast<unsigned>(blocks + 2));
    UnequalStages stages;
    for (int kind = 0; kind < kinds; ++kind) {
      stages.of_kind.push_back(uniform(blocks, 1 + below(12), below(20), below(20)));
      if (alike) continue;
      for (Ticks& block : stages.of_kind.back().blocks) block = Ticks(1 + below(12));
    }
    for (int stage = 0; stage < count; ++stage)
      stages.kind_of_stage.push_back(below(static_cast<unsigned>(kinds)));
    const std::vector<int> found = cut_blocks_for(stages);
    EXPECT_EQ(found.size(), static_cast<std::size_t>(count));
    EXPECT_TRUE(expect_best_of_all_cuts(
        found, blocks, [&](const std::vector<int>& cut) { return slowest_stage_of(stages, cut); }));
  }
}

}  // namespace
}  // namespace meshwright
