#include "simulator/variation/asynchronous_training.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

using testing::ElementsAre;

constexpr Ticks us(std::int64_t count) { return Ticks(count * 1'000'000); }

// A single worker: pull 1, compute 10, push 3, update 2 = 16 us per iteration, staleness 0.
TEST(AsynchronousTraining, IsOneAfterAnotherForASingleWorker) {
  const AsynchronousResult result = simulate_asynchronous({.compute = {us(10)},
                                                           .push = us(3),
                                                           .update = us(2),
                                                           .pull = us(1),
                                                           .latency = {},
                                                           .turns = 5});
  EXPECT_EQ(result.duration, us(5 * 16));
  EXPECT_EQ(result.period, us(16));
  EXPECT_THAT(result.staleness, ElementsAre(5));
}

// Four workers, push 3, compute 2, pull 1: the inbound link needs 12 us for all of them, a single
// worker 6. Weights are sent at 0, 1, 2, 3, gradients arrive at 3, 4, 5, 6, and from 3 us on the
// link is always busy: 10 iterations end at 3 + 10 * 12. In the first iteration 0, 1, 2, 3 others
// come first; after that always 3: worker 0 pulls again at 6, with one update in the weights, and
// is the fifth to push.
TEST(AsynchronousTraining, IsBoundByTheServersLink) {
  const AsynchronousResult result = simulate_asynchronous({.compute = {us(2), us(2), us(2), us(2)},
                                                           .push = us(3),
                                                           .update = {},
                                                           .pull = us(1),
                                                           .latency = {},
                                                           .turns = 10});
  EXPECT_EQ(result.duration, us(123));
  EXPECT_THAT(result.staleness, ElementsAre(1, 1, 1, 37));
  EXPECT_DOUBLE_EQ(result.mean_staleness, 2.85);
  EXPECT_DOUBLE_EQ(result.busy, 120.0 / 123.0);
  EXPECT_DOUBLE_EQ(result.updates_per_second, 40 / 123e-6);
}

// A worker that is ten times slower does not delay the others, but its gradients are stale. Fast
// workers take pull 1 + compute 10 + push 1 = 12 us, 13 if they collide; during the slow one's 102
// us, each of the two others updates about eight times.
TEST(AsynchronousTraining, LetsFastWorkersPassASlowOne) {
  AsynchronousTraining training{.compute = {us(10), us(10), us(10)},
                                .push = us(1),
                                .update = {},
                                .pull = us(1),
                                .latency = {},
                                .turns = 8};
  const AsynchronousResult even = simulate_asynchronous(training);
  training.compute.back() = us(100);
  const AsynchronousResult uneven = simulate_asynchronous(training);
  EXPECT_LT(even.staleness.size(), 4u);  // staleness is at most 2
  EXPECT_GE(uneven.staleness.size(), 15u);
  // The slow one alone takes 8 * 102 us; the others add at most one message per iteration.
  EXPECT_GE(uneven.duration, us(8 * 102));
  EXPECT_LE(uneven.duration, us(8 * 106));
}

TEST(AsynchronousTraining, GivesTheSameForTheSameSeed) {
  AsynchronousTraining training{.compute = std::vector<Ticks>(8, us(20)),
                                .push = us(1),
                                .update = us(1),
                                .pull = us(1),
                                .latency = us(1),
                                .jitter = 0.5,
                                .seed = 7,
                                .turns = 50};
  const AsynchronousResult first = simulate_asynchronous(training);
  EXPECT_EQ(simulate_asynchronous(training).staleness, first.staleness);
  training.seed = 8;
  EXPECT_NE(simulate_asynchronous(training).duration, first.duration);
  std::int64_t updates = 0;
  for (const std::int64_t count : first.staleness) updates += count;
  EXPECT_EQ(updates, 8 * 50);
  // During an iteration of a worker, every other worker updates about once.
  EXPECT_NEAR(first.mean_staleness, 7, 1);
}

}  // namespace
}  // namespace meshwright
