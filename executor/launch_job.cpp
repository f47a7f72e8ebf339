/// Ranks that somebody else has started, a process each, which meet over TCP (tcp_meeting.hpp). The
/// process of rank 0 watches: the others tell it how far they are, and notice when it is gone.
#include <poll.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "executor/launch.hpp"
#include "executor/supervision.hpp"
#include "executor/tcp_meeting.hpp"
#include "executor/wire.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTell{100};  ///< how often ranks say how far they are
constexpr std::chrono::milliseconds kLook{20};

/// What a process holds that its rank may use after the launch has been given up.
struct OwnRank {
  OwnRank(RankId rank, RankSockets sockets)
      : communicator(rank, std::move(sockets), progress.beats) {}
  RankProgress progress;
  SocketCommunicator communicator;
  BodyEnd end;  ///< once is_finished
};

std::vector<std::byte> bytes_of(const RankProgress& progress) {
  ByteWriter writer;
  write_progress(writer, progress);
  return writer.take();
}

/// The ends of rank 0's process to all ranks, its own too.
class Watch {
 public:
  Watch(std::vector<FileDescriptor> sockets, const LaunchOptions& options)
      : options_(options), progress_(sockets.size()), watchdog_(progress_, options) {
    for (FileDescriptor& socket : sockets)
      ranks_.push_back({std::make_unique<FrameStream>(std::move(socket))});
  }

  /// True: all ranks have ended, or were given up.
  bool look() {
    take_frames();
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (!ranks_[i].is_open && !ranks_[i].is_through) {
        ranks_[i].is_through = true;
        fail(i, FailureKind::kDeath, "its process is gone: killed, or ended without a word");
      }
    if (!failure_)
      if (std::optional<RankFailure> failure = watchdog_.look()) fail(std::move(*failure));
    const bool all = std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.is_through; });
    if (all && !failure_ && stopped_) failure_ = stopped_without_reason(*stopped_);
    return all || (failure_ && Clock::now() - failed_ > options_.patience / 4);
  }
  const std::optional<RankFailure>& failure() const { return failure_; }

 private:
  struct Rank {
    std::unique_ptr<FrameStream> stream;
    bool is_open = true;
    bool is_through = false;  ///< it said how it ended, or is gone
  };

  void take_frames() {
    std::vector<pollfd> polled;
    for (const Rank& rank : ranks_)
      polled.push_back({rank.is_open ? rank.stream->fd() : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(kLook.count()));
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      ranks_[i].stream->send_rest();
      if (polled[i].revents != 0)
        ranks_[i].is_open =
            ranks_[i].stream->receive([&](Frame&& frame) { take(i, std::move(frame)); });
    }
  }

  void take(std::size_t rank, Frame&& frame) {
    switch (frame.kind) {
      case FrameKind::kReport:
        if (auto cause = hand_over(options_, RankId(rank), frame.bytes))
          fail(rank, FailureKind::kError, std::move(*cause));
        return;
      case FrameKind::kProgress: {
        ByteReader reader(frame.bytes);
        return read_progress(reader, progress_[rank]);
      }
      case FrameKind::kFailed: {
        ranks_[rank].is_through = progress_[rank].is_finished = true;
        const auto* text = reinterpret_cast<const char*>(frame.bytes.data());  // NOLINT: bytes
        return fail(rank, FailureKind::kError, std::string(text, frame.bytes.size()));
      }
      case FrameKind::kFinished:
        ranks_[rank].is_through = progress_[rank].is_finished = true;
        if (!frame.bytes.empty() && !stopped_) stopped_ = RankId(rank);
        return;
      default:
        return;
    }
  }

  void fail(std::size_t rank, FailureKind kind, std::string cause) {
    fail({.kind = kind,
          .rank = RankId(rank),
          .task = TaskId(progress_[rank].task.load()),
          .cause = std::move(cause)});
  }
  void fail(RankFailure failure) {
    if (failure_) return;
    failure_ = std::move(failure);
    failed_ = Clock::now();
    for (const Rank& rank : ranks_) rank.stream->send(FrameKind::kStop);
  }

  const LaunchOptions& options_;
  std::vector<Rank> ranks_;
  std::vector<RankProgress> progress_;
  Watchdog watchdog_;
  Clock::time_point failed_;
  std::optional<RankId> stopped_;
  std::optional<RankFailure> failure_;
};

/// Tells whoever watches how far the rank is, and how it ended.
class Teller {
 public:
  explicit Teller(OwnRank& own) : own_(own) {}
  /// True: the end has been told.
  bool tell() {
    if (own_.communicator.is_stopped()) own_.progress.must_stop = true;
    const bool has_ended = own_.progress.is_finished;
    if (has_ended || Clock::now() - told_ > kTell) {
      told_ = Clock::now();
      own_.communicator.tell(FrameKind::kProgress, bytes_of(own_.progress));
    }
    if (!has_ended) return false;
    const BodyEnd& end = own_.end;
    const std::byte stopped{1};
    if (end.cause)
      own_.communicator.tell(FrameKind::kFailed, std::as_bytes(std::span(*end.cause)));
    else
      own_.communicator.tell(FrameKind::kFinished, std::span(&stopped, end.was_stopped ? 1 : 0));
    return true;
  }

 private:
  OwnRank& own_;
  Clock::time_point told_;
};

}  // namespace

std::optional<RankFailure> run_job(int ranks, const RankBody& body, const LaunchOptions& options) {
  MW_CHECK(options.job != nullptr && options.job->ranks == ranks);
  const bool watches = options.job->rank == 0;
  JobSockets sockets = meet_over_tcp(*options.job, std::max(options.patience, kMeetingPatience));
  const auto own = std::make_shared<OwnRank>(RankId(options.job->rank), std::move(sockets.own));
  const CrashWatch crash_watch;
  std::thread thread([own, body] {
    CrashWatch::set_rank_of_this_thread(&own->progress);
    own->end = run_body(body, own->communicator, own->progress);
    CrashWatch::set_rank_of_this_thread(nullptr);
    own->progress.is_finished = true;
  });
  std::optional<Watch> watch;
  if (watches) watch.emplace(std::move(sockets.of_launcher), options);
  Teller teller(*own);
  bool is_told = false, is_over = false;
  std::optional<Clock::time_point> stopped;
  while (!is_over) {
    is_told = is_told || teller.tell();
    if (watches) {
      is_over = watch->look();
      continue;
    }
    // A rank that does not stop is given up, as nobody waits for it any more.
    if (own->communicator.is_stopped() && !stopped) stopped = Clock::now();
    is_over = is_told || (stopped && Clock::now() - *stopped > options.patience / 4);
    if (!is_over) std::this_thread::sleep_for(kLook);
  }
  const bool is_stuck = !own->progress.is_finished;
  is_stuck ? thread.detach() : thread.join();
  if (!watches)
    return is_stuck ? std::optional(RankFailure{.kind = FailureKind::kHang,
                                                .rank = RankId(options.job->rank),
                                                .task = TaskId(own->progress.task.load()),
                                                .cause = "does not stop, though the run has failed",
                                                .is_stuck = true})
                    : std::nullopt;
  std::optional<RankFailure> failure = watch->failure();
  if (failure) failure->is_stuck = is_stuck;
  return failure;
}

}  // namespace meshwright
