#include "planner/search/block_choices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace meshwright {
namespace {

AlikeBlocks blocks_of(int count, std::initializer_list<std::pair<int, int>> times_and_bytes) {
  AlikeBlocks blocks{.count = count, .choices = {}};
  for (const auto& [time, bytes] : times_and_bytes)
    blocks.choices.push_back({Ticks(time), Bytes(bytes)});
  return blocks;
}

// Of 4 blocks, each 10 ticks with 1 byte or 6 with 3: 8 bytes are enough for 2 fast ones.
TEST(FastChoices, MakeAsManyBlocksFastAsFit) {
  const std::vector<AlikeBlocks> groups{blocks_of(4, {{10, 1}, {6, 3}})};
  EXPECT_EQ(fast_choices(groups, Bytes(8)), (BlockCounts{{2, 2}}));
  EXPECT_EQ(fast_choices(groups, Bytes(9)), (BlockCounts{{2, 2}}));
  EXPECT_EQ(fast_choices(groups, Bytes(100)), (BlockCounts{{0, 4}}));
  EXPECT_EQ(fast_choices(groups, Bytes(3)), std::nullopt);
}

// The middle choice saves more per byte than the way from the first to the last.
TEST(FastChoices, StepAlongTheHull) {
  const std::vector<AlikeBlocks> groups{blocks_of(2, {{10, 0}, {4, 2}, {2, 4}, {9, 3}})};
  EXPECT_EQ(fast_choices(groups, Bytes(4)), (BlockCounts{{0, 2, 0, 0}}));
  EXPECT_EQ(fast_choices(groups, Bytes(6)), (BlockCounts{{0, 1, 1, 0}}));
}

// What is left after the steps along the hull goes to a choice beside it.
TEST(FastChoices, FillTheRest) {
  const std::vector<AlikeBlocks> groups{blocks_of(1, {{10, 0}, {0, 10}, {8, 4}})};
  EXPECT_EQ(fast_choices(groups, Bytes(9)), (BlockCounts{{0, 0, 1}}));
}

/// All ways to give the blocks of a group choices, by brute force.
void for_all_counts(const std::vector<AlikeBlocks>& groups, std::size_t group, BlockCounts& counts,
                    const std::function<void()>& visit) {
  if (group == groups.size()) return visit();
  std::vector<int>& of = counts[group];
  const std::function<void(std::size_t, int)> divide = [&](std::size_t choice, int left) {
    if (choice + 1 == of.size()) {
      of[choice] = left;
      for_all_counts(groups, group + 1, counts, visit);
      return;
    }
    for (of[choice] = 0; of[choice] <= left; ++of[choice]) divide(choice + 1, left - of[choice]);
  };
  divide(0, groups[group].count);
}

std::optional<Ticks> fastest_by_brute_force(const std::vector<AlikeBlocks>& groups, Bytes budget) {
  std::optional<Ticks> fastest;
  BlockCounts counts;
  for (const AlikeBlocks& group : groups) counts.emplace_back(group.choices.size(), 0);
  for_all_counts(groups, 0, counts, [&] {
    if (held_by(groups, counts) > budget) return;
    const Ticks time = time_of(groups, counts);
    if (!fastest || time < *fastest) fastest = time;
  });
  return fastest;
}

TEST(FastChoices, AreAtMostOneStepOfOneBlockSlowerThanTheFastest) {
  std::mt19937 random(7);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  int solved = 0, optimal = 0;
  constexpr int kProblems = 400;
  for (int i = 0; i < kProblems; ++i) {
    std::vector<AlikeBlocks> groups;
    Ticks largest_step;
    Bytes most;
    for (int g = 0; g < 1 + below(3); ++g) {
      AlikeBlocks& group = groups.emplace_back();
      group.count = 1 + below(4);
      for (int c = 0; c < 1 + below(4); ++c)
        group.choices.push_back({Ticks(below(50)), Bytes(below(20))});
      const auto [least, longest] =
          std::ranges::minmax_element(group.choices, {}, &BlockChoice::time);
      largest_step = std::max(largest_step, longest->time - least->time);
      most +=
          std::ranges::max(group.choices, {}, &BlockChoice::held).held * std::int64_t{group.count};
    }
    const Bytes budget(below(static_cast<int>(most.value) + 2));
    const std::optional<BlockCounts> counts = fast_choices(groups, budget);
    const std::optional<Ticks> fastest = fastest_by_brute_force(groups, budget);
    ASSERT_EQ(counts.has_value(), fastest.has_value()) << i;
    if (!counts) continue;
    ++solved;
    for (std::size_t g = 0; g < groups.size(); ++g)
      EXPECT_EQ(std::accumulate((*counts)[g].begin(), (*counts)[g].end(), 0), groups[g].count);
    EXPECT_LE(held_by(groups, *counts), budget) << i;
    EXPECT_LE(time_of(groups, *counts), *fastest + largest_step) << i;
    optimal += time_of(groups, *counts) == *fastest ? 1 : 0;
  }
  EXPECT_GT(optimal, solved / 2);
}

}  // namespace
}  // namespace meshwright
