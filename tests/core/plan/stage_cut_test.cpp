#include "core/plan/stage_cut.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> cut(std::string_view rule, int blocks, const Placement& placement) {
  return cut_uniformly(*stage_cut_from_text(rule), blocks, placement);
}

TEST(StageCut, ComesBackFromText) {
  for (const std::string_view text :
       {"balanced", "uniform", "uniform:first=3", "uniform:first=3,last=2", "uniform:embedding",
        "uniform:embedding,loss"}) {
    const auto parsed = stage_cut_from_text(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  for (const std::string_view text :
       {"", "even", "uniform:", "uniform:first", "uniform:first=-1", "uniform:first=3,first=3",
        "uniform:first=3,loss", "uniform,loss", "balanced:loss", "uniform:last=99999999999"})
    EXPECT_FALSE(stage_cut_from_text(text)) << text;
}

TEST(StageCut, DividesBlocksByPipelineRank) {
  EXPECT_THAT(cut("uniform", 12, looped_placement(4, 1)), ElementsAre(3, 3, 3, 3));
  // 30 + embedding + loss = 32 = 4 x 8.
  EXPECT_THAT(cut("uniform:embedding,loss", 30, looped_placement(4, 1)), ElementsAre(7, 8, 8, 7));
  EXPECT_THAT(cut("uniform:loss", 31, looped_placement(4, 1)), ElementsAre(8, 8, 8, 7));
  EXPECT_THAT(cut("uniform:first=3,last=1", 10, looped_placement(4, 1)), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(cut("uniform:first=3,last=1", 4, looped_placement(2, 1)), ElementsAre(3, 1));
}

// Two chunks per rank: stage s is on rank s mod 2, in a V on ranks 0 1 1 0. Of 30 + 2 blocks each
// rank has 16, each chunk 8. With 4 blocks on the first rank, the last has 8.
TEST(StageCut, DividesTheBlocksOfARankByChunk) {
  EXPECT_THAT(cut("uniform:embedding,loss", 30, looped_placement(2, 2)), ElementsAre(7, 8, 8, 7));
  EXPECT_THAT(cut("uniform:first=4", 12, looped_placement(2, 2)), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(cut("uniform:first=4", 12, wave_placement(2, 2)), ElementsAre(2, 4, 4, 2));
}

TEST(StageCut, RefusesBlocksThatCannotBeDivided) {
  const auto complaint = [](std::string_view rule, int blocks, const Placement& placement) {
    return diagnostics_of([&] { cut(rule, blocks, placement); }).at(0).what;
  };
  EXPECT_EQ(complaint("uniform", 13, looped_placement(4, 1)),
            "'uniform' cannot divide 13 blocks evenly over 4 pipeline ranks");
  EXPECT_THAT(complaint("uniform", 12, looped_placement(4, 2)),
              HasSubstr("pipeline rank 0 3 blocks, which its 2 chunks cannot share evenly"));
  EXPECT_THAT(complaint("uniform:first=9", 8, looped_placement(2, 1)), HasSubstr("cannot divide"));
  EXPECT_THAT(complaint("uniform:first=1,last=1", 8, looped_placement(1, 1)),
              HasSubstr("cannot divide"));
}

}  // namespace
}  // namespace meshwright
