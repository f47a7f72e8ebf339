/// Jobs of processes connected over TCP, here mostly as threads of one: the protocol is the same.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"
#include "executor/launch/handshake.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/run_copies.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/launch/tcp_rendezvous.hpp"
#include "executor/transport/collectives.hpp"
#include "tests/executor/launch/on_ranks.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

JobPlace place_of(int rank, int ranks, std::uint16_t port) {
  return {.rank = rank,
          .ranks = ranks,
          .local_rank = rank,
          .host = "127.0.0.1",
          .port = port,
          .started_by = "test"};
}

/// Results by rank.
struct JobEnds {
  std::vector<std::optional<RankFailure>> failures;
  std::vector<std::vector<std::byte>> reports;  ///< the last of each rank
};

constexpr std::chrono::milliseconds kShort{300};

JobEnds run_all(int ranks, const RankBody& body,
                LaunchOptions options = {.watchdog_timeout = std::chrono::milliseconds(2000)}) {
  const std::uint16_t port = free_port();
  JobEnds ends;
  ends.failures.resize(static_cast<std::size_t>(ranks));
  ends.reports.resize(static_cast<std::size_t>(ranks));
  if (!options.on_report)
    options.on_report = [&](RankId from, std::span<const std::byte> bytes) {
      ends.reports[from.index()].assign(bytes.begin(), bytes.end());
    };
  std::vector<std::thread> processes;
  for (int r = 0; r < ranks; ++r)
    processes.emplace_back([&, r] {
      const JobPlace place = place_of(r, ranks, port);
      LaunchOptions own = options;
      own.job = &place;
      ends.failures[static_cast<std::size_t>(r)] = run_ranks(RankKind::kJob, ranks, body, own);
    });
  for (std::thread& process : processes) process.join();
  return ends;
}

void wait_for_message(Communicator& communicator, RankProgress& progress, RankId from) {
  progress.is_waiting = true;
  std::array<std::byte, 1> byte{};
  communicator.receive(from, {Channel::kData, 1}, byte);
  progress.is_waiting = false;
}

TEST(TcpJob, DeliversMessagesToAllRanksAndReportsToRankZero) {
  constexpr int kRanks = 4;
  const JobEnds ends = run_all(kRanks, [](Communicator& communicator, RankProgress&) {
    std::vector<float> values(1000, static_cast<float>(communicator.rank().value + 1));
    RankGroup group(communicator, all_ranks(kRanks), {Channel::kData, 1});
    group.all_reduce(std::span(values), Ticks());
    communicator.report(std::as_bytes(std::span(values).last(1)));
  });
  for (const auto& failure : ends.failures) EXPECT_FALSE(failure.has_value()) << failure->cause;
  for (const std::vector<std::byte>& report : ends.reports) {
    ASSERT_EQ(report.size(), sizeof(float));
    float value = 0;
    std::memcpy(&value, report.data(), sizeof(value));
    EXPECT_EQ(value, 10);  // 1 + 2 + 3 + 4
  }
}

TEST(TcpJob, OfOneRankNeedsNoRendezvous) {
  const JobEnds ends = run_all(1, [](Communicator& communicator, RankProgress&) {
    communicator.report(std::as_bytes(std::span("1", 1)));
  });
  EXPECT_FALSE(ends.failures[0].has_value());
  EXPECT_EQ(ends.reports[0].size(), 1u);
}

// Rank 2 fails while the others wait for it: all end, and all know which rank failed and why.
TEST(TcpJob, EndsAllRanksWhenOneFails) {
  const JobEnds ends = run_all(3, [](Communicator& communicator, RankProgress& progress) {
    progress.task = 7;
    if (communicator.rank() == RankId(2)) throw std::runtime_error("out of luck");
    std::array<std::byte, 1> byte{};
    communicator.receive(RankId(2), {Channel::kData, 1}, byte);
  });
  for (const auto& failure : ends.failures) {
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, FailureKind::kError);
    EXPECT_EQ(failure->rank, RankId(2));
    EXPECT_EQ(failure->cause, "out of luck");
    EXPECT_EQ(failure->task, TaskId(7));
    EXPECT_FALSE(failure->is_stuck);
  }
}

// A rank waits for the end of the job, not only for its own.
TEST(TcpJob, FailsOnRanksThatHadAlreadyFinished) {
  const JobEnds ends = run_all(3, [](Communicator& communicator, RankProgress&) {
    if (communicator.rank() != RankId(2)) return;
    std::this_thread::sleep_for(kShort);
    throw std::runtime_error("out of luck");
  });
  for (const auto& failure : ends.failures) {
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, RankId(2));
    EXPECT_EQ(failure->cause, "out of luck");
  }
}

/// Runs a rank in a process that exits with 0 in the middle of its work.
class LostProcess {
 public:
  explicit LostProcess(const JobPlace& place) : process_(fork()) {
    if (process_ != 0) return;
    const auto body = [](Communicator&, RankProgress&) {
      std::this_thread::sleep_for(kShort);
      _exit(0);
    };
    run_ranks(RankKind::kJob, place.ranks, body, {.job = &place});
    _exit(0);
  }
  ~LostProcess() { waitpid(process_, nullptr, 0); }
  LostProcess(const LostProcess&) = delete;
  LostProcess& operator=(const LostProcess&) = delete;

 private:
  pid_t process_;
};

// The process of rank 0 supervises the job, so nothing else can tell rank 1 that it failed.
TEST(TcpJob, FailsOnTheOthersWhenTheProcessOfRankZeroIsLost) {
  for (const bool waits : {true, false}) {
    SCOPED_TRACE(testing::Message() << "rank 1 waits: " << waits);
    const std::uint16_t port = free_port();
    const JobPlace first = place_of(0, 2, port), second = place_of(1, 2, port);
    const LostProcess lost(first);
    const auto failure = run_ranks(RankKind::kJob, 2,
                                   [waits](Communicator& communicator, RankProgress& progress) {
                                     if (waits) wait_for_message(communicator, progress, RankId(0));
                                   },
                                   {.job = &second});
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, FailureKind::kDeath);
    EXPECT_EQ(failure->rank, RankId(0));
    EXPECT_EQ(failure->cause, kProcessLost);
    EXPECT_FALSE(failure->is_stuck);
  }
}

// Heartbeats without progress do not prevent the watchdog from declaring a hang.
TEST(TcpJob, NamesTheRankThatHangs) {
  static std::atomic<bool> release;
  release = false;
  const JobEnds ends = run_all(2,
                               [](Communicator& communicator, RankProgress& progress) {
                                 if (communicator.rank() == RankId(0))
                                   return wait_for_message(communicator, progress, RankId(1));
                                 progress.task = 7;
                                 for (int i = 0; i < 5000 && !release; ++i)
                                   std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                 throw std::runtime_error("failure not noticed");
                               },
                               {.watchdog_timeout = kShort});
  release = true;
  ASSERT_TRUE(ends.failures[0].has_value());
  EXPECT_EQ(ends.failures[0]->kind, FailureKind::kHang) << ends.failures[0]->cause;
  EXPECT_EQ(ends.failures[0]->rank, RankId(1));
  EXPECT_EQ(ends.failures[0]->task, TaskId(7));
  EXPECT_FALSE(ends.failures[0]->is_stuck);
  ASSERT_TRUE(ends.failures[1].has_value());
  EXPECT_TRUE(ends.failures[1]->is_stuck);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread frees its memory
}

TEST(TcpJob, IsExemptFromTheWatchdogDuringFileIo) {
  const JobEnds ends =
      run_all(2,
              [](Communicator& communicator, RankProgress& progress) {
                if (communicator.rank() == RankId(1))
                  return wait_for_message(communicator, progress, RankId(0));
                progress.is_on_disk = true;
                std::this_thread::sleep_for(3 * kShort);
                progress.is_on_disk = false;
                communicator.send(RankId(1), {Channel::kData, 1}, std::array<std::byte, 1>{}, {});
              },
              {.watchdog_timeout = kShort});
  for (const auto& failure : ends.failures) EXPECT_FALSE(failure.has_value()) << failure->cause;
}

TEST(TcpJob, EndsIfAReportCannotBeProcessed) {
  const JobEnds ends =
      run_all(2,
              [](Communicator& communicator, RankProgress& progress) {
                if (communicator.rank() == RankId(1))
                  communicator.report(std::as_bytes(std::span("1", 1)));
                else
                  wait_for_message(communicator, progress, RankId(1));
              },
              {.watchdog_timeout = kShort, .on_report = [](RankId, std::span<const std::byte>) {
                 throw std::runtime_error("no space is left");
               }});
  ASSERT_TRUE(ends.failures[0].has_value());
  EXPECT_EQ(ends.failures[0]->rank, RankId(1));
  EXPECT_EQ(ends.failures[0]->cause, "no space is left");
  EXPECT_FALSE(ends.failures[0]->is_stuck);
}

/// Runs rank 1 in a process that is stopped (SIGSTOP) once it runs, and killed later.
class StoppedProcess {
 public:
  explicit StoppedProcess(const JobPlace& place) : process_(fork()) {
    if (process_ != 0) return;
    run_ranks(RankKind::kJob, place.ranks, [](Communicator&, RankProgress&) { raise(SIGSTOP); },
              {.job = &place});
    _exit(0);
  }
  ~StoppedProcess() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  StoppedProcess(const StoppedProcess&) = delete;
  StoppedProcess& operator=(const StoppedProcess&) = delete;
  void kill_after(std::chrono::milliseconds time, const std::atomic<bool>& is_done) const {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!is_done && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(process_, SIGKILL);
  }

 private:
  pid_t process_;
};

// Messages to it are never received; the run ends anyway, long before the process is killed.
TEST(TcpJob, DoesNotWaitForAStoppedProcess) {
  const std::uint16_t port = free_port();
  const JobPlace first = place_of(0, 2, port), second = place_of(1, 2, port);
  const StoppedProcess stopped(second);
  constexpr std::chrono::milliseconds kLong{6000};
  std::atomic<bool> is_done = false;
  std::thread killer([&] { stopped.kill_after(kLong, is_done); });
  const auto start = std::chrono::steady_clock::now();
  const auto failure = run_ranks(RankKind::kJob, 2,
                                 [](Communicator& communicator, RankProgress& progress) {
                                   progress.is_waiting = true;  // as far as others can tell
                                   const std::vector<std::byte> message(std::size_t{64} << 20);
                                   communicator.send(RankId(1), {}, message, {});
                                   wait_for_message(communicator, progress, RankId(1));
                                 },
                                 {.watchdog_timeout = kShort, .job = &first});
  const auto passed = std::chrono::steady_clock::now() - start;
  is_done = true;
  killer.join();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, FailureKind::kHang) << failure->cause;
  EXPECT_EQ(failure->rank, RankId(1));
  EXPECT_LT(passed, kLong / 2);
}

TEST(TcpRendezvous, NamesTheMissingRanks) {
  const JobPlace place = place_of(0, 3, free_port());
  try {
    rendezvous_over_tcp(place, std::chrono::milliseconds(200));
    ADD_FAILURE() << "no missing rank was reported";
  } catch (const RuntimeFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("rendezvous timed out: missing ranks 1, 2"));
  }
}

TEST(TcpRendezvous, NamesTheAddressOfRankZero) {
  const std::uint16_t port = free_port();
  const JobPlace place = place_of(1, 2, port);
  try {
    rendezvous_over_tcp(place, std::chrono::milliseconds(200));
    ADD_FAILURE() << "no missing rank was reported";
  } catch (const RuntimeFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("127.0.0.1 port " + std::to_string(port)));
  }
}

int connect_to_port(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < 200; ++i) {
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
    ::close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}

// Connections without a valid handshake are closed and do not disturb the rendezvous.
TEST(TcpRendezvous, ClosesConnectionsWithoutAHandshake) {
  const std::uint16_t port = free_port();
  std::thread stranger([port] {
    constexpr std::string_view kWords = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    const FileDescriptor socket(connect_to_port(port));
    EXPECT_EQ(::send(socket.get(), kWords.data(), kWords.size(), MSG_NOSIGNAL), std::ssize(kWords));
  });
  std::optional<JobSockets> second;
  std::thread other([&] {
    stranger.join();
    second = rendezvous_over_tcp(place_of(1, 2, port), std::chrono::seconds(10));
  });
  const JobSockets first = rendezvous_over_tcp(place_of(0, 2, port), std::chrono::seconds(10));
  other.join();
  EXPECT_GE(first.own.peers[1].get(), 0);
  EXPECT_GE(first.of_launcher[1].get(), 0);
  ASSERT_TRUE(second.has_value());
  EXPECT_GE(second->own.peers[0].get(), 0);
}

// ---- handshakes ----

TEST(TcpRendezvous, IsNotDelayedBySilentConnections) {
  constexpr int kSilent = 200;
  const std::uint16_t port = free_port();
  std::optional<JobSockets> second;
  std::vector<FileDescriptor> silent;
  const auto begin = std::chrono::steady_clock::now();
  std::thread other([&] {
    for (int i = 0; i < kSilent; ++i) silent.emplace_back(connect_to_port(port));
    second = rendezvous_over_tcp(place_of(1, 2, port), std::chrono::seconds(20));
  });
  const JobSockets first = rendezvous_over_tcp(place_of(0, 2, port), std::chrono::seconds(20));
  other.join();
  EXPECT_GE(first.own.peers[1].get(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

/// The error on rank 1.
std::string refusal_of(const JobPlace& second) {
  std::atomic<bool> done = false;
  std::string what;
  std::thread other([&] {
    try {
      rendezvous_over_tcp(second, std::chrono::seconds(10));
    } catch (const RuntimeFailure& failure) {
      what = failure.what();
    }
    done = true;
  });
  JobPlace first = place_of(0, 2, second.port);
  first.secret = "sesame";
  EXPECT_THROW(rendezvous_over_tcp(first, std::chrono::seconds(10), &done), RendezvousInterrupted);
  other.join();
  return what;
}

TEST(TcpRendezvous, RejectsOtherSecrets) {
  JobPlace second = place_of(1, 2, free_port());
  EXPECT_THAT(refusal_of(second), HasSubstr("has another secret"));
  second.secret = "sesame ";
  EXPECT_THAT(refusal_of(second), HasSubstr("has another secret"));
}

TEST(TcpRendezvous, RefusesProcessesOfOtherJobs) {
  JobPlace second = place_of(1, 3, free_port());
  second.secret = "sesame";
  EXPECT_THAT(refusal_of(second), HasSubstr("does not belong to a job of 3 ranks"));
}

TEST(Handshake, AuthenticatesBothSides) {
  const Challenge challenge = new_challenge();
  const Hello hello = signed_hello({kProtocol, 1, 2, SocketUse::kPeer, 9, new_challenge(), {}},
                                   "sesame", challenge);
  EXPECT_TRUE(is_signed(hello, "sesame", challenge));
  EXPECT_FALSE(is_signed(hello, "Sesame", challenge));
  EXPECT_FALSE(is_signed(hello, "sesame", new_challenge()));  // a replayed one
  Hello other = hello;
  other.rank = 0;
  EXPECT_FALSE(is_signed(other, "sesame", challenge));
  const Welcome welcome = signed_welcome(Verdict::kAccepted, "sesame", hello);
  EXPECT_TRUE(is_signed(welcome, "sesame", hello));
  EXPECT_FALSE(is_signed(welcome, "sesame", other));
  EXPECT_FALSE(is_signed(Welcome{Verdict::kAccepted, hello.proof}, "sesame", hello));
}

TEST(Handshake, SecretsAreRandom) {
  EXPECT_EQ(new_secret().size(), 64u);
  EXPECT_NE(new_secret(), new_secret());
}

// ---- interruptions, unresponsive processes, invalid frames ----

TEST(TcpJob, IsInterruptedByAnyRank) {
  const std::uint16_t port = free_port();
  std::atomic<bool> interrupted = false;
  std::array<std::optional<RankFailure>, 2> failures;
  std::vector<std::thread> processes;
  for (int r = 0; r < 2; ++r)
    processes.emplace_back([&, r] {
      const JobPlace place = place_of(r, 2, port);
      const LaunchOptions options{.watchdog_timeout = std::chrono::seconds(20),
                                  .interrupted = r == 1 ? &interrupted : nullptr,
                                  .job = &place};
      failures.at(static_cast<std::size_t>(r)) = run_ranks(
          RankKind::kJob, 2,
          [&](Communicator& communicator, RankProgress& progress) {
            if (communicator.rank() == RankId(1)) interrupted = true;
            wait_for_message(communicator, progress, RankId(1 - communicator.rank().value));
          },
          options);
    });
  for (std::thread& process : processes) process.join();
  for (const auto& failure : failures) {
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->kind, FailureKind::kInterruption) << failure->cause;
  }
}

TEST(TcpJob, EndsWhenRankZeroDoesNotAnswer) {
  const std::uint16_t port = free_port();
  std::optional<JobSockets> frozen;  // a process that was suspended after the rendezvous
  std::thread first(
      [&] { frozen = rendezvous_over_tcp(place_of(0, 2, port), std::chrono::seconds(10)); });
  const JobPlace second = place_of(1, 2, port);
  const std::optional<RankFailure> failure =
      run_ranks(RankKind::kJob, 2,
                [](Communicator& communicator, RankProgress& progress) {
                  wait_for_message(communicator, progress, RankId(0));
                },
                {.watchdog_timeout = kShort, .job = &second});
  first.join();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->kind, FailureKind::kHang);
  EXPECT_EQ(failure->rank, RankId(0));
  EXPECT_EQ(failure->cause, "its process does not answer");
}

std::optional<RankFailure> failure_after(std::span<const std::byte> sent) {
  const std::uint16_t port = free_port();
  std::thread second([&] {
    const JobSockets sockets = rendezvous_over_tcp(place_of(1, 2, port), std::chrono::seconds(10));
    EXPECT_EQ(::send(sockets.own.launcher.get(), sent.data(), sent.size(), MSG_NOSIGNAL),
              std::ssize(sent));
    std::array<char, 1024> rest{};
    ::fcntl(sockets.own.launcher.get(), F_SETFL, 0);
    while (::recv(sockets.own.launcher.get(), rest.data(), rest.size(), 0) > 0) {
    }
  });
  const JobPlace first = place_of(0, 2, port);
  std::optional<RankFailure> failure =
      run_ranks(RankKind::kJob, 2,
                [](Communicator& communicator, RankProgress& progress) {
                  wait_for_message(communicator, progress, RankId(1));
                },
                {.watchdog_timeout = std::chrono::seconds(4), .job = &first});
  second.join();
  return failure;
}

TEST(TcpJob, FailsOnInvalidMessages) {
  const auto frame = [](FrameKind kind, std::size_t size, std::vector<std::byte> bytes) {
    const FrameHeader header = header_of(kind, {}, {}, size);
    bytes.insert(bytes.begin(), header.begin(), header.end());
    return bytes;
  };
  const std::vector<std::vector<std::byte>> invalid{
      frame(FrameKind::kReport, std::size_t{1} << 63, {}),       // longer than any
      frame(static_cast<FrameKind>(200), 0, {}),                 // of no kind
      frame(FrameKind::kProgress, 3, std::vector<std::byte>(3))  // too short
  };
  for (const std::vector<std::byte>& bytes : invalid) {
    const std::optional<RankFailure> failure = failure_after(bytes);
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, RankId(1));
    EXPECT_NE(failure->kind, FailureKind::kHang) << failure->cause;
  }
}

}  // namespace
}  // namespace meshwright
