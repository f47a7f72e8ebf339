/// Ranks that an external launcher has started, one process each, connected over TCP
/// (tcp_rendezvous.hpp). The process of rank 0 supervises the job: the others send it heartbeats,
/// and it tells them how the job ended. A process that loses rank 0 counts the job as failed.
#include <poll.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/launch/tcp_rendezvous.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{20};

/// State of this process that its rank's thread may still use after run_job() has returned.
struct OwnRank {
  OwnRank(RankId rank, RankSockets sockets)
      : communicator(rank, std::move(sockets), progress.beats) {}
  RankProgress progress;
  SocketCommunicator communicator;
  BodyResult end;  ///< once is_finished
};

std::vector<std::byte> bytes_of(const RankProgress& progress) {
  ByteWriter writer;
  write_progress(writer, progress);
  return writer.take();
}

/// Rank 0 only: supervises all ranks, including its own, over one socket per rank.
class Supervisor {
 public:
  Supervisor(std::vector<FileDescriptor> sockets, const LaunchOptions& options)
      : options_(options), progress_(sockets.size()), watchdog_(progress_, options) {
    for (FileDescriptor& socket : sockets)
      ranks_.push_back({.stream = std::make_unique<FrameStream>(std::move(socket))});
  }

  /// Returns true once all ranks have ended, or those still running after a failure are given up.
  bool poll() {
    // The watchdog first, the ranks' own reports take precedence: launchers signal all processes
    // when one dies, and that must not be reported as an interruption.
    std::optional<RankFailure> noticed;
    if (!failure_) noticed = watchdog_.poll();
    send_keepalives();
    take_frames();
    note_unresponsive();
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (!ranks_[i].is_open && !ranks_[i].has_ended) {
        ranks_[i].has_ended = true;
        fail(i, FailureKind::kDeath, std::string(kProcessLost));
      }
    if (noticed) fail(std::move(*noticed));
    const bool all = std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.has_ended; });
    if (all && stopped_) fail(stopped_without_reason(*stopped_));
    if (all && !failure_) send_to_all(FrameKind::kFinished);
    return all || (failure_ && Clock::now() - failed_ > options_.watchdog_timeout / 4);
  }
  const std::optional<RankFailure>& failure() const { return failure_; }

 private:
  struct Rank {
    std::unique_ptr<FrameStream> stream;
    bool is_open = true;
    bool has_ended = false;   ///< reported how it ended, or its process is gone
    std::int64_t frames = 0;  ///< received
    IdleTimer idle = {};
  };

  void send_keepalives() {
    if (Clock::now() - kept_alive_ < kReportInterval) return;
    kept_alive_ = Clock::now();
    send_to_all(FrameKind::kKeepalive);
  }

  void note_unresponsive() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const auto idle = ranks_[i].idle.since_change(ranks_[i].frames);
      progress_[i].is_unresponsive = !ranks_[i].has_ended && idle > options_.watchdog_timeout / 2;
    }
  }

  void take_frames() {
    std::vector<pollfd> polled;
    for (const Rank& rank : ranks_)
      polled.push_back({rank.is_open ? rank.stream->fd() : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(kPoll.count()));
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].stream->send_rest();
      if (polled[i].revents != 0)
        ranks_[i].is_open =
            ranks_[i].stream->receive([&](Frame&& frame) { take(i, std::move(frame)); });
    }
  }

  void take(std::size_t rank, Frame&& frame) {
    ++ranks_[rank].frames;
    try {
      take_valid(rank, std::move(frame));
    } catch (const InvalidFrame&) {
      fail(rank, FailureKind::kError, "its process has sent an invalid message");
    }
  }

  void take_valid(std::size_t rank, Frame&& frame) {
    switch (frame.kind) {
      case FrameKind::kInterrupted:
        if (options_.finish_step != nullptr)
          options_.finish_step->store(true);
        else
          fail({.kind = FailureKind::kInterruption, .rank = RankId(rank), .cause = "interrupted"});
        return;
      case FrameKind::kReport:
        if (auto failure = deliver_report(options_, RankId(rank), frame.bytes))
          fail(rank, std::move(*failure));
        return;
      case FrameKind::kProgress: {
        ByteReader reader(frame.bytes);
        return read_progress(reader, progress_[rank]);
      }
      case FrameKind::kFailed:
        ranks_[rank].has_ended = progress_[rank].is_finished = true;
        return fail(rank, failure_from(frame.bytes));
      case FrameKind::kFinished:
        ranks_[rank].has_ended = progress_[rank].is_finished = true;
        if (!frame.bytes.empty() && !stopped_) stopped_ = RankId(rank);
        return;
      default:
        return;
    }
  }

  void fail(std::size_t rank, FailureKind kind, std::string cause) {
    fail(rank, {.kind = kind, .cause = std::move(cause)});
  }
  /// Adds the rank and its task.
  void fail(std::size_t rank, RankFailure failure) {
    failure.rank = RankId(rank);
    failure.task = TaskId(progress_[rank].task.load());
    fail(std::move(failure));
  }
  void fail(RankFailure failure) {
    if (failure_) return;
    failure_ = std::move(failure);
    failed_ = Clock::now();
    send_to_all(FrameKind::kStop, bytes_of(*failure_));
  }
  void send_to_all(FrameKind kind, std::span<const std::byte> bytes = {}) {
    for (const Rank& rank : ranks_) rank.stream->send(kind, bytes);
  }

  const LaunchOptions& options_;
  std::vector<Rank> ranks_;
  std::vector<RankProgress> progress_;
  Watchdog watchdog_;
  Clock::time_point failed_, kept_alive_;
  std::optional<RankId> stopped_;
  std::optional<RankFailure> failure_;
};

/// Sends the supervisor the rank's heartbeats, and finally how it ended.
class Reporter {
 public:
  Reporter(OwnRank& own, const LaunchOptions& options) : own_(own), options_(options) {}
  /// Returns true once the end has been reported.
  bool report() {
    if (own_.communicator.is_stopped()) own_.progress.must_stop = true;
    if (options_.interrupted != nullptr && *options_.interrupted && !has_told_interruption_) {
      has_told_interruption_ = true;
      own_.communicator.tell(FrameKind::kInterrupted);
    }
    const bool has_ended = own_.progress.is_finished;
    if (has_ended || Clock::now() - reported_ > kReportInterval) {
      reported_ = Clock::now();
      own_.communicator.tell(FrameKind::kProgress, bytes_of(own_.progress));
    }
    if (!has_ended) return false;
    BodyResult& end = own_.end;
    if (end.was_stopped && own_.communicator.is_out_of_memory()) end.failure = out_of_memory();
    const std::byte stopped{1};
    if (end.failure)
      own_.communicator.tell(FrameKind::kFailed, bytes_of(*end.failure));
    else
      own_.communicator.tell(FrameKind::kFinished, std::span(&stopped, end.was_stopped ? 1 : 0));
    return true;
  }

 private:
  OwnRank& own_;
  const LaunchOptions& options_;
  bool has_told_interruption_ = false;
  Clock::time_point reported_;
};

/// All processes but that of rank 0: waits until the job is over, not only its own rank.
class JobEnd {
 public:
  JobEnd(OwnRank& own, const LaunchOptions& options) : own_(own), options_(options) {}

  /// After a failure the process of rank 0 ends first: external launchers kill the whole job as
  /// soon as one process exits with an error, and rank 0 still has to report it.
  bool is_over(bool own_is_reported) {
    const bool is_lost = own_.communicator.is_launcher_gone();
    if (idle_.since_change(own_.communicator.frames_of_launcher()) >
            2 * options_.watchdog_timeout &&
        !is_unresponsive_) {
      is_unresponsive_ = true;
      own_.communicator.give_up_launcher();
    }
    if (!is_stopped_ && own_.communicator.is_stopped()) {
      is_stopped_ = true;
      stopped_ = Clock::now();
    }
    const auto grace = options_.watchdog_timeout / (own_is_reported ? 2 : 4);
    const bool is_late = is_stopped_ && Clock::now() - stopped_ > grace;
    return is_late ||
           (own_is_reported && (is_lost || is_unresponsive_ || own_.communicator.is_released()));
  }

  /// To be called once it is over.
  std::optional<RankFailure> failure(bool is_stuck) const {
    RankFailure failure{
        .kind = FailureKind::kDeath, .rank = RankId(0), .cause = std::string(kProcessLost)};
    if (own_.communicator.is_released()) return std::nullopt;
    if (is_unresponsive_) {
      failure.kind = FailureKind::kHang;
      failure.cause = kNoAnswer;
    }
    if (!own_.communicator.stop_reason().empty()) {
      failure = failure_from(own_.communicator.stop_reason());
    } else if (!is_stuck && own_.end.failure) {
      failure = *own_.end.failure;
      failure.rank = own_.communicator.rank();
      failure.task = TaskId(own_.progress.task.load());
    }
    failure.is_stuck = is_stuck;
    return failure;
  }

 private:
  OwnRank& own_;
  const LaunchOptions& options_;
  IdleTimer idle_;
  bool is_unresponsive_ = false;  ///< the process of rank 0
  bool is_stopped_ = false;
  Clock::time_point stopped_;
};

}  // namespace

std::optional<RankFailure> run_job(int ranks, const RankBody& body, const LaunchOptions& options) {
  MW_CHECK(options.job != nullptr && options.job->ranks == ranks);
  const bool supervises = options.job->rank == 0;
  JobSockets sockets;
  try {
    sockets = rendezvous_over_tcp(
        *options.job, std::max(options.watchdog_timeout, kRendezvousTimeout), options.interrupted);
  } catch (const RendezvousInterrupted&) {
    return RankFailure{.kind = FailureKind::kInterruption,
                       .rank = RankId(options.job->rank),
                       .cause = "interrupted"};
  }
  const auto own = std::make_shared<OwnRank>(RankId(options.job->rank), std::move(sockets.own));
  const CrashWatch crash_watch;
  std::thread thread = start_rank(own, body);
  std::optional<Supervisor> supervisor;
  JobEnd end(*own, options);
  try {
    if (supervises) supervisor.emplace(std::move(sockets.of_launcher), options);
    Reporter reporter(*own, options);
    bool is_reported = false, is_over = false;
    while (!is_over) {
      is_reported = is_reported || reporter.report();
      is_over = supervises ? supervisor->poll() : end.is_over(is_reported);
      if (!supervises && !is_over) std::this_thread::sleep_for(kPoll);
    }
  } catch (...) {  // its own rank may still run
    thread.detach();
    RankFailure failure = failure_of_exception();
    failure.rank = RankId(options.job->rank);
    failure.is_stuck = true;
    return failure;
  }
  const bool is_stuck = !own->progress.is_finished;
  is_stuck ? thread.detach() : thread.join();
  if (!supervises) return end.failure(is_stuck);
  std::optional<RankFailure> failure = supervisor->failure();
  if (failure) failure->is_stuck = is_stuck;
  return failure;
}

}  // namespace meshwright
