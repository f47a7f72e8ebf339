/// How ranks of every kind start, end and fail.
#include "executor/launch/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"
#include "executor/launch/supervision.hpp"
#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kShort{300};

void wait_for_message(Communicator& communicator, RankProgress& progress, RankId from) {
  progress.is_waiting = true;
  std::array<std::byte, 1> byte{};
  communicator.receive(from, {}, byte);
  progress.is_waiting = false;
}

RankId other(const Communicator& communicator) { return RankId(1 - communicator.rank().value); }

/// No child process is left.
void expect_no_children() {
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

class Ranks : public testing::TestWithParam<RankKind> {
 protected:
  void TearDown() override { expect_no_children(); }
  std::optional<RankFailure> run(int ranks, const RankBody& body) {
    return run_ranks(GetParam(), ranks, body, {.watchdog_timeout = kShort});
  }
};

TEST_P(Ranks, EndWhenAllBodiesEnd) {
  for (const int count : {1, 2, 16}) {
    const auto ran = on_ranks<int>(GetParam(), count,
                                   [](Communicator& c) { return std::vector{c.rank().value}; });
    for (int i = 0; i < count; ++i) EXPECT_THAT(ran[static_cast<std::size_t>(i)], ElementsAre(i));
  }
}

TEST_P(Ranks, ReportInOrder) {
  std::array<std::vector<std::byte>, 2> reported;
  const auto failure = run_ranks(GetParam(), 2,
                                 [](Communicator& communicator, RankProgress&) {
                                   for (std::uint8_t i = 0; i < 100; ++i) {
                                     const std::byte byte{i};
                                     communicator.report({&byte, 1});
                                   }
                                 },
                                 {.on_report = [&](RankId rank, std::span<const std::byte> bytes) {
                                   reported[rank.index()].push_back(bytes.front());
                                 }});
  ASSERT_FALSE(failure.has_value()) << failure->cause;
  for (const auto& bytes : reported) {
    ASSERT_EQ(bytes.size(), 100u);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(static_cast<std::size_t>(bytes[i]), i);
  }
}

TEST_P(Ranks, ReportTheRankThatThrewNotItsPeers) {
  const auto failure = run(3, [](Communicator& communicator, RankProgress& progress) {
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

TEST_P(Ranks, ReportOutOfMemory) {
  const auto failure = run(1, [](Communicator&, RankProgress&) { throw std::bad_alloc(); });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->cause, "out of memory");
}

TEST_P(Ranks, DetectADeadlock) {
  const auto failure = run(2, [](Communicator& communicator, RankProgress& progress) {
    wait_for_message(communicator, progress, other(communicator));
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_THAT(failure->cause, HasSubstr("hung: no rank made progress for 0.3 s"));
  EXPECT_FALSE(failure->is_stuck);
}

/// Rank 0 has finished and does not wait, but it is not the one that hangs.
TEST_P(Ranks, ReportTheRankThatHangs) {
  static std::atomic<bool> release;
  release = false;
  const auto failure = run(3, [](Communicator& communicator, RankProgress& progress) {
    if (communicator.rank() == RankId(0)) return;
    if (communicator.rank() == RankId(1)) wait_for_message(communicator, progress, RankId(2));
    progress.task = 7;
    while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(2));
  EXPECT_EQ(failure->task, TaskId(7));
  EXPECT_EQ(failure->is_stuck, GetParam() == RankKind::kThreads);  // a process can be killed
  release = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread frees its memory
}

TEST_P(Ranks, StopWhenInterrupted) {
  const std::atomic<bool> interrupted{true};
  const auto failure = run_ranks(GetParam(), 2,
                                 [](Communicator& communicator, RankProgress& progress) {
                                   wait_for_message(communicator, progress, other(communicator));
                                 },
                                 {.interrupted = &interrupted});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, FailureKind::kInterruption);
}

TEST_P(Ranks, StopWithoutWaitingForMessages) {
  const auto failure = run(2, [](Communicator& communicator, RankProgress& progress) {
    if (communicator.rank() == RankId(1)) throw std::runtime_error("enough");
    while (!progress.must_stop) {
      ++progress.beats;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    throw PeerFailure("stopped");
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(1));
  EXPECT_EQ(failure->cause, "enough");
  EXPECT_FALSE(failure->is_stuck);
}

/// A crashed thread stays suspended; a crashed process has ended.
TEST_P(Ranks, ReportACrash) {
  const auto failure = run(2, [](Communicator& communicator, RankProgress& progress) {
    if (communicator.rank() == RankId(0)) wait_for_message(communicator, progress, RankId(1));
    progress.task = 5;
    std::abort();
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(1));
  EXPECT_EQ(failure->task, TaskId(5));
  EXPECT_THAT(failure->cause, HasSubstr("signal 6 (Aborted)"));
  EXPECT_EQ(failure->is_stuck, GetParam() == RankKind::kThreads);
}

/// A message of 64 MiB is sent over a socket in many pieces, each a heartbeat on both ends; in
/// memory it is one piece.
TEST_P(Ranks, BeatWithEveryPieceOfAMessage) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  std::array<std::int64_t, 2> beats{};
  const auto failure =
      run_ranks(GetParam(), 2,
                [](Communicator& communicator, RankProgress& progress) {
                  const std::int64_t before = progress.beats;
                  std::vector<std::byte> bytes(kSize);
                  if (communicator.rank() == RankId(0)) {
                    communicator.send(RankId(1), {}, bytes, {});
                    wait_for_message(communicator, progress, RankId(1));  // it has arrived
                  } else {
                    communicator.receive(RankId(0), {}, bytes);
                    communicator.send(RankId(0), {}, std::span(bytes).first(1), {});
                  }
                  const std::int64_t passed = progress.beats - before;
                  communicator.report(std::as_bytes(std::span(&passed, 1)));
                },
                {.on_report = [&](RankId rank, std::span<const std::byte> bytes) {
                  std::memcpy(&beats[rank.index()], bytes.data(), sizeof(std::int64_t));
                }});
  ASSERT_FALSE(failure.has_value()) << failure->cause;
  const std::int64_t least = GetParam() == RankKind::kThreads ? 2 : 16;
  EXPECT_GE(beats[0], least);
  EXPECT_GE(beats[1], least);
}

/// A rank in file I/O is not taken for hung.
TEST_P(Ranks, AreExemptFromTheWatchdogDuringFileIo) {
  const auto failure = run(2, [](Communicator& communicator, RankProgress& progress) {
    if (communicator.rank() == RankId(1))
      return wait_for_message(communicator, progress, RankId(0));
    progress.is_on_disk = true;
    std::this_thread::sleep_for(3 * kShort);
    progress.is_on_disk = false;
    communicator.send(RankId(1), {}, std::array<std::byte, 1>{}, {});
  });
  EXPECT_FALSE(failure.has_value()) << failure->cause;
}

/// As after Ctrl-Z and `fg`: at the first poll the ranks had no time to make progress.
TEST(Watchdog, IgnoresTimeBetweenDistantPolls) {
  const RankProgress rank;
  const LaunchOptions options{.watchdog_timeout = std::chrono::milliseconds(200)};
  Watchdog watchdog({&rank, 1}, options);
  EXPECT_FALSE(watchdog.poll().has_value());
  std::this_thread::sleep_for(2 * options.watchdog_timeout);
  EXPECT_FALSE(watchdog.poll().has_value());
  std::optional<RankFailure> failure;
  for (int i = 0; i < 1000 && !failure; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    failure = watchdog.poll();
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, FailureKind::kHang);
}

/// The failure of two ranks of which none makes progress: the first one is on disk, the second one
/// waits for it.
std::optional<RankFailure> failure_on_disk(bool is_unresponsive, int most_polls) {
  std::array<RankProgress, 2> ranks;
  ranks[0].is_on_disk = true;
  ranks[0].is_unresponsive = is_unresponsive;
  ranks[1].is_waiting = true;
  const LaunchOptions options{.watchdog_timeout = std::chrono::milliseconds(4)};
  Watchdog watchdog(ranks, options);
  std::optional<RankFailure> failure;
  for (int i = 0; i < most_polls && !failure; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    failure = watchdog.poll();
  }
  return failure;
}

TEST(Watchdog, WaitsLongerForFileIoButNotForever) {
  EXPECT_FALSE(failure_on_disk(false, 200).has_value());  // 1 ms each, at most
  const auto failure = failure_on_disk(false, 10'000);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(0));
  EXPECT_EQ(failure->cause, "its file system does not answer: no rank made progress for 2.4 s");
}

TEST(Watchdog, DoesNotWaitForFileIoOfASuspendedProcess) {
  const auto failure = failure_on_disk(true, 200);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(0));
  EXPECT_THAT(failure->cause, HasSubstr("its process does not answer"));
}

/// A stack size larger than the address space: thread creation fails.
TEST(RunThreads, NameTheRankWhoseThreadCannotBeStarted) {
  pthread_attr_t before, impossible;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&impossible), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
  const auto failure = run_threads(2, [](Communicator&, RankProgress&) {});
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(0));
  EXPECT_THAT(failure->cause, HasSubstr("cannot start a thread: "));
  EXPECT_FALSE(failure->is_stuck);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Ranks, testing::Values(RankKind::kThreads, RankKind::kProcesses),
                         kind_name);

TEST(RunProcesses, ReportAKilledRank) {
  const auto failure = run_processes(3, [](Communicator& communicator, RankProgress& progress) {
    progress.task = communicator.rank().value;
    if (communicator.rank() == RankId(2)) raise(SIGKILL);
    wait_for_message(communicator, progress, RankId(2));
  });
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(2));
  EXPECT_EQ(failure->task, TaskId(2));
  EXPECT_EQ(failure->cause, "was killed by signal 9 (Killed)");
  expect_no_children();
}

TEST(RunProcesses, ReportARankThatExits) {
  for (const int code : {0, 3}) {
    const auto failure = run_processes(2, [&](Communicator& communicator, RankProgress& progress) {
      if (communicator.rank() == RankId(0)) _exit(code);
      wait_for_message(communicator, progress, RankId(0));
    });
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, RankId(0));
    EXPECT_EQ(failure->cause, "its process exited early, with status " + std::to_string(code));
  }
  expect_no_children();
}

/// A stopped process makes no progress and receives no messages.
TEST(RunProcesses, ReportAStoppedRank) {
  const auto failure = run_processes(2,
                                     [](Communicator& communicator, RankProgress& progress) {
                                       if (communicator.rank() == RankId(1)) raise(SIGSTOP);
                                       wait_for_message(communicator, progress, RankId(1));
                                     },
                                     {.watchdog_timeout = kShort});
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, RankId(1));
  EXPECT_FALSE(failure->is_stuck);
  expect_no_children();
}

/// Killing the launcher kills its ranks: the pipe they hold open is closed.
TEST(RunProcesses, EndWithTheirLauncher) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t launcher = fork();
  ASSERT_GE(launcher, 0);
  if (launcher == 0) {
    close(ends[0]);
    run_processes(3, [&](Communicator&, RankProgress&) {
      [[maybe_unused]] const ssize_t n = write(ends[1], "r", 1);
      for (;;) pause();
    });
    _exit(1);
  }
  close(ends[1]);
  std::array<char, 1> letter{};
  for (int i = 0; i < 3; ++i) ASSERT_EQ(read(ends[0], letter.data(), 1), 1);  // all are running
  kill(launcher, SIGKILL);
  EXPECT_EQ(read(ends[0], letter.data(), 1), 0);  // the other end is closed
  close(ends[0]);
  waitpid(launcher, nullptr, 0);
}

}  // namespace
}  // namespace meshwright
