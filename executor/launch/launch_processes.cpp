#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/transport/socket_communicator.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;

/// All socket ends: those of the ranks and those of the launcher.
struct Sockets {
  std::vector<RankSockets> of_rank;
  std::vector<FileDescriptor> of_launcher;
};

Sockets connect_all(std::size_t ranks) {
  Sockets sockets;
  sockets.of_rank.resize(ranks);
  for (RankSockets& rank : sockets.of_rank) rank.peers.resize(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = i + 1; j < ranks; ++j) {
      auto ends = socket_pair();
      sockets.of_rank[i].peers[j] = std::move(ends[0]);
      sockets.of_rank[j].peers[i] = std::move(ends[1]);
    }
    auto ends = socket_pair();
    sockets.of_rank[i].launcher = std::move(ends[0]);
    sockets.of_launcher.push_back(std::move(ends[1]));
  }
  return sockets;
}

/// Delays SIGTERM, for a child that has not yet reset the handler of its parent.
class BlockedTermination {
 public:
  BlockedTermination() {
    sigset_t termination;
    sigemptyset(&termination);
    sigaddset(&termination, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &termination, &before_);
  }
  ~BlockedTermination() { unblock(); }
  BlockedTermination(const BlockedTermination&) = delete;
  BlockedTermination& operator=(const BlockedTermination&) = delete;
  void unblock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// Runs the rank in the child; never returns to the parent's code.
void be_rank(RankId rank, RankSockets sockets, const RankBody& body,
             RankProgress& progress) noexcept {
  FileDescriptor launcher(::dup(sockets.launcher.get()));
  try {
    SocketCommunicator communicator(rank, std::move(sockets), progress.beats);
    BodyResult end = run_body(body, communicator, progress);
    if (end.was_stopped && communicator.is_out_of_memory()) end.failure = out_of_memory();
    if (end.failure)
      communicator.tell(FrameKind::kFailed, bytes_of(*end.failure));
    else if (!end.was_stopped)
      communicator.tell(FrameKind::kFinished);
    progress.is_finished = true;
  } catch (...) {  // of the communicator
    FrameStream(std::move(launcher)).send(FrameKind::kFailed, bytes_of(failure_of_exception()));
  }
  ::_exit(0);  // the communicator has flushed its sockets
}

/// The child processes of one run. They are killed at the latest by the destructor.
class Children {
 public:
  Children(int ranks, const LaunchOptions& options)
      : options_(options), progress_(ranks), children_(static_cast<std::size_t>(ranks)) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    kill_all();
    for (const Child& child : children_)
      if (child.pid > 0) ::waitpid(child.pid, nullptr, 0);
  }

  void start(const RankBody& body) {
    Sockets sockets = connect_all(children_.size());
    std::fflush(nullptr);  // otherwise the children would flush it, too
    for (std::size_t i = 0; i < children_.size(); ++i) start(i, sockets, body);
    for (std::size_t i = 0; i < children_.size(); ++i)
      children_[i].stream = std::make_unique<FrameStream>(std::move(sockets.of_launcher[i]));
  }

  std::optional<RankFailure> run() {
    Watchdog watchdog(progress_.all(), options_);
    std::optional<Clock::time_point> failed_at;
    while (running() > 0) {
      take_frames();
      note_unresponsive();
      reap();
      if (!failure_) {
        if (std::optional<RankFailure> failure = watchdog.poll()) fail(std::move(*failure));
      } else if (!failed_at) {
        failed_at = Clock::now();
      } else if (Clock::now() - *failed_at > options_.watchdog_timeout / 4) {
        kill_all();
      }
    }
    return failure_;
  }

 private:
  struct Child {
    pid_t pid = 0;  ///< 0: reaped
    std::unique_ptr<FrameStream> stream;
    bool is_open = true;
    bool is_through = false;  ///< reported how it ended
  };

  void start(std::size_t rank, Sockets& sockets, const RankBody& body) {
    const pid_t parent = ::getpid();
    BlockedTermination blocked;
    const pid_t child = ::fork();
    if (child < 0)
      throw RuntimeFailure({"--ranks processes",
                            fmt::format("cannot start process {} of {}: {}", rank + 1,
                                        children_.size(), std::generic_category().message(errno)),
                            "use fewer ranks, or --ranks threads"});
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::setpgid(0, group_);  // Ctrl-C reaches only the parent
      ::signal(SIGINT, SIG_IGN);
      ::signal(SIGTERM, SIG_DFL);
      blocked.unblock();  // the handler of the parent would have lost it
      RankSockets own = std::move(sockets.of_rank[rank]);
      sockets = {};  // otherwise open copies would hide the death of a rank
      be_rank(RankId(rank), std::move(own), body, progress_.all()[rank]);
    }
    children_[rank].pid = child;
    ::setpgid(child, group_);
    if (group_ == 0) group_ = child;
    sockets.of_rank[rank] = {};
  }

  std::ptrdiff_t running() const {
    return std::count_if(children_.begin(), children_.end(),
                         [](const Child& child) { return child.pid > 0; });
  }

  /// The process group exists as long as one of them is not reaped.
  void kill_all() {
    if (running() > 0) ::kill(-group_, SIGKILL);
  }

  /// Waits for at most one polling interval; shorter if a child is about to end.
  void take_frames() {
    std::vector<pollfd> polled;
    auto wait = kPollingInterval;
    for (const Child& child : children_) {
      polled.push_back({child.is_open ? child.stream->fd() : -1, POLLIN, 0});
      if (child.pid > 0 && !child.is_open) wait = std::chrono::milliseconds(1);
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
    for (std::size_t i = 0; i < children_.size(); ++i)
      if (polled[i].revents != 0)
        children_[i].is_open =
            children_[i].stream->receive([&](Frame&& frame) { take(i, std::move(frame)); });
  }

  void take(std::size_t rank, Frame&& frame) {
    switch (frame.kind) {
      case FrameKind::kReport:
        if (options_.on_report) options_.on_report(RankId(rank), frame.bytes);
        return;
      case FrameKind::kFailed:
        children_[rank].is_through = true;
        return fail(rank, failure_from(frame.bytes));
      case FrameKind::kFinished:
        children_[rank].is_through = true;
        return;
      default:
        return;
    }
  }

  void note_unresponsive() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      siginfo_t info{};
      constexpr int kNoExits = WSTOPPED | WCONTINUED | WNOHANG;
      if (children_[i].pid == 0 ||
          ::waitid(P_PID, static_cast<id_t>(children_[i].pid), &info, kNoExits) != 0 ||
          info.si_pid == 0)
        continue;
      progress_.all()[i].is_unresponsive = info.si_code == CLD_STOPPED;
    }
  }

  /// Checks exit statuses, but only of children whose frames were all read.
  void reap() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      if (child.pid == 0 || child.is_open) continue;
      int status = 0;
      const pid_t ended = ::waitpid(child.pid, &status, WNOHANG);
      if (ended == 0) continue;
      child.pid = 0;
      if (ended > 0 && WIFSIGNALED(status))
        fail(i, {.kind = FailureKind::kDeath,
                 .cause = "was killed by " + signal_text(WTERMSIG(status))});
      else if (!child.is_through || status != 0)
        fail(i, {.kind = FailureKind::kDeath,
                 .cause =
                     fmt::format("its process exited early, with status {}", WEXITSTATUS(status))});
    }
  }

  /// Adds the rank and its task.
  void fail(std::size_t rank, RankFailure failure) {
    failure.rank = RankId(rank);
    failure.task = TaskId(progress_.all()[rank].task.load());
    fail(std::move(failure));
  }

  void fail(RankFailure failure) {
    if (failure_) return;
    failure_ = std::move(failure);
    for (RankProgress& rank : progress_.all()) rank.must_stop = true;
    for (const Child& child : children_)
      if (child.stream) child.stream->send(FrameKind::kStop);
  }

  const LaunchOptions& options_;
  SharedProgress progress_;
  std::vector<Child> children_;
  pid_t group_ = 0;  ///< process group of the children: PID of the first
  std::optional<RankFailure> failure_;
};

}  // namespace

std::optional<RankFailure> run_processes(int ranks, const RankBody& body,
                                         const LaunchOptions& options) {
  Children children(ranks, options);
  children.start(body);
  return children.run();
}

}  // namespace meshwright
