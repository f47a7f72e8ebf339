#include "planner/search/unequal_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "planner/search/memory_screen.hpp"
#include "planner/search/tried_plan.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Ticks end_of(const std::vector<ReplicaTime>& replicas, const std::vector<int>& counts) {
  Ticks end;
  for (std::size_t r = 0; r < replicas.size(); ++r)
    end = std::max(end, replicas[r].rest + replicas[r].microbatch * counts[r]);
  return end;
}

// Twice as fast, twice as many.
TEST(BalancedMicrobatches, FollowTheSpeedOfTheReplicas) {
  const std::vector<ReplicaTime> replicas{{Ticks(10), {}}, {Ticks(20), {}}, {Ticks(20), {}}};
  EXPECT_THAT(balanced_microbatches(replicas, 8), ElementsAre(4, 2, 2));
}

TEST(BalancedMicrobatches, GiveTheFirstOfEqualReplicasMore) {
  const std::vector<ReplicaTime> replicas(4, {Ticks(10), Ticks(3)});
  EXPECT_THAT(balanced_microbatches(replicas, 10), ElementsAre(3, 3, 2, 2));
}

TEST(BalancedMicrobatches, AreMultiplesOfTheUnit) {
  const std::vector<ReplicaTime> replicas{{Ticks(10), {}}, {Ticks(30), {}}};
  EXPECT_THAT(balanced_microbatches(replicas, 16, 4), ElementsAre(12, 4));
  EXPECT_THAT(balanced_microbatches(replicas, 18, 4), IsEmpty());
}

TEST(BalancedMicrobatches, NeedOneForEveryReplica) {
  const std::vector<ReplicaTime> replicas{{Ticks(1), {}}, {Ticks(1'000), {}}};
  EXPECT_THAT(balanced_microbatches(replicas, 2), ElementsAre(1, 1));
  EXPECT_THAT(balanced_microbatches(replicas, 1), IsEmpty());
}

/// The earliest end over all ways to hand out the micro-batches.
Ticks earliest_end(const std::vector<ReplicaTime>& replicas, int total) {
  Ticks best = Ticks::max();
  std::vector<int> counts;
  const std::function<void(int)> hand_out = [&](int left) {
    const auto others = static_cast<int>(replicas.size() - counts.size()) - 1;
    if (others == 0) {
      counts.push_back(left);
      best = std::min(best, end_of(replicas, counts));
      counts.pop_back();
      return;
    }
    for (int count = 1; count <= left - others; ++count) {
      counts.push_back(count);
      hand_out(left - count);
      counts.pop_back();
    }
  };
  hand_out(total);
  return best;
}

TEST(BalancedMicrobatches, EndAsEarlyAsAnyOthers) {
  std::mt19937 random(7);
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 500; ++i) {
    std::vector<ReplicaTime> replicas(static_cast<std::size_t>(between(1, 4)));
    for (ReplicaTime& replica : replicas) replica = {Ticks(between(1, 30)), Ticks(between(0, 40))};
    const int total = static_cast<int>(replicas.size()) + between(0, 9);
    const std::vector<int> counts = balanced_microbatches(replicas, total);
    ASSERT_EQ(std::accumulate(counts.begin(), counts.end(), 0), total);
    ASSERT_EQ(end_of(replicas, counts), earliest_end(replicas, total)) << i;
  }
}

/// Four fast devices, and four with `share` of their rates, without a pipeline.
SmallJob without_pipeline(double share) {
  SmallJob small(small_dense_model(), fast_and_slow(1, 1, share),
                 {.gpus = 8, .global_batch = 64, .sequence_length = 512});
  small.fixed.pipeline = 1;
  small.fixed.tensor = 1;
  small.fixed.context = 1;
  small.fixed.offload_optimizer = false;
  return small;
}

// Of all shares in which equal devices have equally many micro-batches.
TEST(UnequalShareSearch, FindsWhatSimulatingAllSharesFinds) {
  for (const double share : {0.25, 0.3, 0.5}) {
    SmallJob small = without_pipeline(share);
    small.fixed.zero = 1;
    const SearchResult equal = small.search({.top = 1, .threads = 2});
    const SearchResult found = small.search({.top = 1, .threads = 2, .tries_shares = true});
    ASSERT_FALSE(found.plans.empty());
    const RankedPlan& best = found.plans.front();
    EXPECT_TRUE(fits_in_memory(best.evaluation));
    Ticks expected = equal.plans.front().evaluation.step_time;
    Plan plan = best.plan;
    const int together = 64 / plan.strategy.micro_batch / 4;  // of a fast and a slow device
    for (int fast = 1; fast < together; ++fast) {
      plan.strategy.batch_shares = {{0, 3, fast}, {4, 7, together - fast}};
      expected = std::min(expected, small.evaluate(plan).step_time);
    }
    EXPECT_LE(best.evaluation.step_time, expected) << share;
    EXPECT_FALSE(best.plan.strategy.batch_shares.empty());
    EXPECT_THAT(found.certificate.refined_by,
                ElementsAre("--batch-shares " + to_text(best.plan.strategy.batch_shares)));
  }
}

// A fast device takes 3 / (3 + 1) of the work of both: 3 : 1 against 1 : 1, where the slow one
// takes twice as long.
TEST(UnequalShareSearch, GainsWhatSlowDevicesHeldUp) {
  const SmallJob small = without_pipeline(1.0 / 3);
  SmallJob slow_decides = without_pipeline(1.0 / 3);
  slow_decides.fixed.data = 8;
  const Ticks equal =
      slow_decides.search({.top = 1, .threads = 1}).plans.front().evaluation.step_time;
  const Ticks shared = small.search({.top = 1, .threads = 1, .tries_shares = true})
                           .plans.front()
                           .evaluation.step_time;
  EXPECT_GT(ratio(equal, shared), 1.5);
  EXPECT_LT(ratio(equal, shared), 2.0);
}

TEST(UnequalShareSearch, LeavesEqualDevicesAndFixedChoicesAlone) {
  const SmallJob equal_devices = without_pipeline(1.0);
  for (const RankedPlan& row :
       equal_devices.search({.top = 3, .threads = 2, .tries_shares = true}).plans)
    EXPECT_TRUE(row.plan.strategy.batch_shares.empty());
  SmallJob sharded = without_pipeline(0.3);
  sharded.fixed.zero = 3;
  for (const RankedPlan& row : sharded.search({.top = 3, .threads = 2, .tries_shares = true}).plans)
    EXPECT_TRUE(row.plan.strategy.batch_shares.empty());
}

TEST(UnequalShareSearch, DoesNotDependOnTheNumberOfThreads) {
  const SmallJob small = without_pipeline(0.4);
  const SearchResult one = small.search({.top = 2, .threads = 1, .tries_shares = true});
  const SearchResult two = small.search({.top = 2, .threads = 2, .tries_shares = true});
  ASSERT_EQ(one.plans.size(), two.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i)
    EXPECT_EQ(one.plans[i].plan, two.plans[i].plan);
}

}  // namespace
}  // namespace meshwright
