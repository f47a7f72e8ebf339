#include "executor/turns.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace meshwright {
namespace {

TEST(Turns, LetNoMoreInThanThereAre) {
  constexpr int kAtOnce = 2, kThreads = 6, kRounds = 200;
  Turns turns(kAtOnce);
  std::atomic<int> inside{0}, most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      RankProgress progress;
      for (int i = 0; i < kRounds; ++i) {
        turns.take(progress);
        const int now = ++inside;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        --inside;
        turns.give_back();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, kAtOnce);
  EXPECT_GE(most, 1);
}

TEST(Turns, AreNotWaitedForByARankThatMustStop) {
  Turns turns(1);
  RankProgress first, second;
  turns.take(first);
  second.must_stop = true;
  EXPECT_THROW(turns.take(second), PeerFailure);
  turns.give_back();
  second.must_stop = false;
  turns.take(second);  // the failed attempt took nothing
}

/// Notes whether somebody else could compute.
class Nothing final : public TaskActions {
 public:
  void begin_step(int) override {}
  void begin_task(const Task&) override {}
  void end_task(const Task&) override {}
  void compute(const Task&, const LayerStep&, const Kernel&) override {
    if (fails) throw std::runtime_error("a kernel failed");
  }
  Ticks communicate(const Task&, const LayerStep&, const Collective&, Ticks ready) override {
    return ready;
  }
  Ticks communicate(const Task&, const Collective&, std::span<const RankId>, Ticks ready) override {
    return ready;
  }
  std::span<const std::byte> outgoing(const Task&) override { return {}; }
  std::span<std::byte> incoming(const Task&) override { return {}; }
  bool fails = false;
};

bool is_free(Turns& turns) {
  RankProgress progress;
  progress.must_stop = true;
  try {
    turns.take(progress);
  } catch (const PeerFailure&) {
    return false;
  }
  turns.give_back();
  return true;
}

TEST(ActionsInTurn, HoldATurnWhileTheyComputeAndNotWhileTheyCommunicate) {
  Turns turns(1);
  Nothing nothing;
  RankProgress progress;
  ActionsInTurn actions(nothing, turns, progress);
  EXPECT_TRUE(is_free(turns));
  actions.compute({}, {}, {});
  EXPECT_FALSE(is_free(turns));
  actions.communicate({}, LayerStep{}, Collective{}, Ticks());
  EXPECT_TRUE(is_free(turns));
  actions.compute({}, {}, {});
  actions.end_task({});
  EXPECT_TRUE(is_free(turns));
}

TEST(ActionsInTurn, GiveTheirTurnBackWhenAKernelFails) {
  Turns turns(1);
  {
    Nothing nothing;
    nothing.fails = true;
    RankProgress progress;
    ActionsInTurn actions(nothing, turns, progress);
    EXPECT_THROW(actions.compute({}, {}, {}), std::runtime_error);
  }
  EXPECT_TRUE(is_free(turns));
}

}  // namespace
}  // namespace meshwright
