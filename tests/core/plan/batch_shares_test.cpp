#include "core/plan/batch_shares.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "core/plan/plan.hpp"

namespace meshwright {
namespace {

TEST(BatchShares, ComeBackFromText) {
  for (const std::string_view text : {"", "0:3", "0-7:12+8-15:4", "0-1:5+2:1+3-6:2"}) {
    const auto parsed = batch_shares_from_text(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(to_text(*parsed), text);
  }
  for (const std::string_view text : {"+", "3", "3:", ":3", "3-:1", "4-3:1", "0:1+", "0:1x",
                                      "0-1:99999999999", "99999999999:1", "0:1,1:2"})
    EXPECT_FALSE(batch_shares_from_text(text)) << text;
}

TEST(BatchShares, AreListedInTheOrderOfTheRanks) {
  EXPECT_EQ(to_text(*batch_shares_from_text("4-5:1+0-3:2")), "0-3:2+4-5:1");
}

TEST(BatchShares, JoinEqualNeighbors) {
  EXPECT_EQ(to_text(shares_of(std::array{3, 3, 2, 2, 2, 3})), "0-1:3+2-4:2+5:3");
}

TEST(BatchShares, AddUp) {
  const BatchShares shares = *batch_shares_from_text("0-7:12+8-11:4");
  EXPECT_EQ(total_microbatches(shares), 8 * 12 + 4 * 4);
  EXPECT_EQ(most_microbatches(shares), 12);
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(total_microbatches({{0, kMost, kMost}, {0, kMost, kMost}}), std::int64_t{1} << 62);
}

// Ranks 0 and 1 run 3 micro-batches of 2 sequences, rank 2 runs 1: the last of 3.
TEST(ShareStart, FollowsTheSharesOfEarlierRanks) {
  Strategy s;
  s.degrees.data = 3;
  s.micro_batch = 2;
  s.global_batch = 14;
  s.batch_shares = *batch_shares_from_text("0-1:3+2:1");
  EXPECT_EQ(microbatch_count(s), 3);
  const auto expect = [&](int rank, std::int64_t microbatch, std::int64_t sequence) {
    const ShareStart start = share_start_of(s, rank);
    EXPECT_EQ(start.microbatch, microbatch) << rank;
    EXPECT_EQ(start.sequence, sequence) << rank;
  };
  expect(0, 0, 0);
  expect(1, 0, 6);
  expect(2, 2, 12);
  s.batch_shares.clear();
  s.global_batch = 18;
  expect(1, 0, 6);
  expect(2, 0, 12);
}

}  // namespace
}  // namespace meshwright
