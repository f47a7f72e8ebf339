#include "executor/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "core/error.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

constexpr LaunchOptions kImpatient{.patience = std::chrono::milliseconds(300)};

void wait_for_message(Communicator& communicator, RankProgress& progress, RankId from) {
  progress.is_waiting = true;
  std::array<std::byte, 1> byte{};
  communicator.receive(from, {}, byte);
  progress.is_waiting = false;
}

TEST(RunThreads, EndsWhenAllRanksEnd) {
  std::atomic<int> ran{0};
  EXPECT_FALSE(run_threads(4, [&](Communicator&, RankProgress&) { ++ran; }).has_value());
  EXPECT_EQ(ran, 4);
}

TEST(RunThreads, NamesTheRankThatThrewNotThoseThatWaitedForIt) {
  const auto failure = run_threads(3, [](Communicator& communicator, RankProgress& progress) {
    if (communicator.rank() == RankId(1)) {
      progress.task = 42;
      throw std::runtime_error("loss is NaN");
    }
    wait_for_message(communicator, progress, RankId(1));
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(1));
  EXPECT_EQ(failure->task, TaskId(42));
  EXPECT_EQ(failure->cause, "loss is NaN");
  EXPECT_FALSE(failure->is_stuck);
}

TEST(RunThreads, NoticesADeadlock) {
  const auto failure = run_threads(
      2,
      [](Communicator& communicator, RankProgress& progress) {
        wait_for_message(communicator, progress, RankId(1 - communicator.rank().value));
      },
      kImpatient);
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->cause, HasSubstr("no rank has moved"));
  EXPECT_FALSE(failure->is_stuck);
}

TEST(RunThreads, NamesTheRankThatHangs) {
  std::atomic<bool> release{false};
  const auto failure = run_threads(
      3,
      [&](Communicator& communicator, RankProgress& progress) {
        if (communicator.rank() != RankId(2)) wait_for_message(communicator, progress, RankId(2));
        progress.task = 7;
        while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      },
      kImpatient);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(2));
  EXPECT_EQ(failure->task, TaskId(7));
  EXPECT_TRUE(failure->is_stuck);
  release = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread uses `release`
}

TEST(RunThreads, StopsWhenInterrupted) {
  const std::atomic<bool> interrupted{true};
  const auto failure =
      run_threads(2,
                  [](Communicator& communicator, RankProgress& progress) {
                    wait_for_message(communicator, progress, RankId(1 - communicator.rank().value));
                  },
                  {.interrupted = &interrupted});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->cause, "interrupted");
}

}  // namespace
}  // namespace meshwright
