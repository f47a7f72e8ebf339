#include "executor/tasks/compute_slots.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/executor/tasks/no_actions.hpp"

namespace meshwright {
namespace {

TEST(ComputeSlots, LimitTheNumberOfConcurrentRanks) {
  constexpr int kAtOnce = 2, kThreads = 6, kRounds = 200;
  ComputeSlots slots(kAtOnce);
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, rank = RankId(t)] {
      slots.pin(rank);
      RankProgress progress;
      for (int i = 0; i < kRounds; ++i) {
        slots.acquire(rank, progress);
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --inside;
        slots.release(rank);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kAtOnce);
  EXPECT_GE(most, 1);
}

TEST(ComputeSlots, StopWaitingWhenTheRankMustStop) {
  ComputeSlots slots(1);
  RankProgress first, second;
  slots.acquire(RankId(0), first);
  second.must_stop = true;
  EXPECT_THROW(slots.acquire(RankId(1), second), PeerFailure);
  slots.release(RankId(0));
  second.must_stop = false;
  slots.acquire(RankId(1), second);  // the failed attempt did not acquire the slot
}

/// Three ranks that ask for the slot again before they release it.
TEST(ComputeSlots, AreGrantedInFifoOrder) {
  ComputeSlots slots(1);
  RankProgress own;
  slots.acquire(RankId(0), own);
  std::vector<int> order;
  std::vector<std::thread> threads;
  std::vector<RankProgress> progress(3);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      slots.acquire(RankId(t + 1), progress[static_cast<std::size_t>(t)]);
      order.push_back(t);  // one at a time
      slots.release(RankId(t + 1));
    });
    while (!progress[static_cast<std::size_t>(t)].is_waiting) std::this_thread::yield();
  }
  EXPECT_TRUE(slots.is_contended(RankId(0)));
  slots.release(RankId(0));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
  EXPECT_FALSE(slots.is_contended(RankId(0)));
}

/// The processors that the thread of a rank may run on.
cpu_set_t processors_of(const ComputeSlots& slots, RankId rank) {
  cpu_set_t allowed;
  std::thread thread([&] {
    slots.pin(rank);
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  });
  thread.join();
  return allowed;
}

// With one slot all ranks share a processor; other threads are not pinned.
TEST(ComputeSlots, PinRanksThatShareASlotToOneProcessor) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const ComputeSlots slots(1);
  const cpu_set_t first = processors_of(slots, RankId(0)), third = processors_of(slots, RankId(2));
  EXPECT_EQ(CPU_COUNT(&first), 1);
  EXPECT_TRUE(CPU_EQUAL(&first, &third));
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// More slots than cores: no pinning.
TEST(ComputeSlots, DoNotPinThreadsIfThereAreTooFewProcessors) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const cpu_set_t allowed = processors_of(ComputeSlots(CPU_SETSIZE + 1), RankId(0));
  EXPECT_TRUE(CPU_EQUAL(&all, &allowed));
}

/// Records whether another rank could compute.
class Nothing final : public NoActions {
 public:
  void compute(const RunTask&, const LayerStep&, const Kernel&) override {
    if (fails) throw std::runtime_error("a kernel failed");
  }
  bool fails = false;
};

bool is_free(ComputeSlots& slots) {
  RankProgress progress;
  progress.must_stop = true;
  try {
    slots.acquire(RankId(1), progress);
  } catch (const PeerFailure&) {
    return false;
  }
  slots.release(RankId(1));
  return true;
}

TEST(ThrottledActions, HoldASlotDuringKernelsButNotDuringCommunication) {
  ComputeSlots slots(1);
  Nothing nothing;
  RankProgress progress;
  ThrottledActions actions(nothing, slots, RankId(0), progress);
  EXPECT_TRUE(is_free(slots));
  actions.compute({}, {}, {});
  EXPECT_FALSE(is_free(slots));
  actions.communicate({}, LayerStep{}, Collective{}, Ticks());
  EXPECT_TRUE(is_free(slots));
  actions.compute({}, {}, {});
  actions.end_task({});
  EXPECT_TRUE(is_free(slots));
}

TEST(ThrottledActions, YieldBetweenTwoKernelsOfOneTask) {
  ComputeSlots slots(1);
  Nothing nothing;
  RankProgress progress, of_other;
  ThrottledActions actions(nothing, slots, RankId(0), progress);
  actions.wait_for_compute_slot();
  std::atomic<bool> has_been_in = false;
  std::thread other([&] {
    slots.acquire(RankId(1), of_other);
    has_been_in = true;
    slots.release(RankId(1));
  });
  while (!of_other.is_waiting) std::this_thread::yield();
  EXPECT_FALSE(has_been_in);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a kernel longer than the time share
  actions.wait_for_compute_slot();
  EXPECT_TRUE(has_been_in);
  other.join();
}

TEST(ThrottledActions, ReleaseTheirSlotWhenAKernelFails) {
  ComputeSlots slots(1);
  {
    Nothing nothing;
    nothing.fails = true;
    RankProgress progress;
    ThrottledActions actions(nothing, slots, RankId(0), progress);
    EXPECT_THROW(actions.compute({}, {}, {}), std::runtime_error);
  }
  EXPECT_TRUE(is_free(slots));
}

}  // namespace
}  // namespace meshwright
