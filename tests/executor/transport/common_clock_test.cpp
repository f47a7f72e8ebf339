#include "executor/transport/common_clock.hpp"

#include <gtest/gtest.h>

#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// How far the moment that a rank agrees to is from rank 0's, after taking back how far its clock
/// has been set forward.
std::vector<std::vector<std::int64_t>> moments(RankKind kind, const std::vector<seconds>& forward) {
  return on_ranks<std::int64_t>(
      kind, static_cast<int>(forward.size()), [&](Communicator& communicator) {
        const seconds mine = forward[static_cast<std::size_t>(communicator.rank().value)];
        CommonClock clock(communicator, {std::to_string(mine.count()), [mine] {
                                           return std::chrono::steady_clock::now() + mine;
                                         }});
        std::vector<std::int64_t> all;
        for (int i = 0; i < 3; ++i)
          all.push_back(nanoseconds((clock.agree() - mine).time_since_epoch()).count());
        return all;
      });
}

class CommonClockOn : public testing::TestWithParam<RankKind> {};

// Ranks 0 and 2 share a clock and agree exactly; the others are off by at most half of a round
// trip, which takes microseconds, and far less than a second on a busy machine.
TEST_P(CommonClockOn, GivesAllRanksTheSameMoment) {
  const auto all = moments(GetParam(), {seconds(0), seconds(5000), seconds(0), seconds(-70)});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(all[2][i], all[0][i]);
    for (const std::size_t rank : {1U, 3U})
      EXPECT_LT(std::abs(all[rank][i] - all[0][i]), 300'000'000) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CommonClockOn,
                         testing::Values(RankKind::kThreads, RankKind::kProcesses));

TEST(CommonClock, NamesTheBootOfThisHost) { EXPECT_FALSE(CommonClock::this_host().host.empty()); }

}  // namespace
}  // namespace meshwright
