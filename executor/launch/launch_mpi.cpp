/// Every process of the job runs one rank in a separate thread; the main thread makes all MPI
/// calls. The process of rank 0 supervises the job: the others send it heartbeats.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/mpi_job.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/transport/mpi_communicator.hpp"
#include "executor/transport/wire.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
/// mpirun kills all processes about one second after it is interrupted, and needs two seconds to
/// end them if one hangs: both are too short for a quarter of the watchdog timeout.
constexpr std::chrono::milliseconds kShortGrace{600};

/// State of this process that its rank's thread may still use after run_mpi() has returned.
struct OwnMpiRank {
  explicit OwnMpiRank(const MpiJob& job)
      : progress(job.progress()), communicator(job.rank(), job.rank_count(), progress.beats) {}
  RankProgress& progress;
  MpiCommunicator communicator;
  BodyResult end;  ///< once is_finished
};

/// Identifies the PID namespace: the boot of the host and the namespace on it.
std::string home_of_pids() {
  std::error_code ignored;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot + std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string();
}

std::vector<std::byte> bytes_of(const RankProgress& progress, const std::string& home) {
  ByteWriter writer;
  write_progress(writer, progress);
  writer.number(static_cast<std::uint32_t>(::getpid()));
  writer.text(home);
  return writer.take();
}

class MpiLaunch {
 public:
  MpiLaunch(MpiJob& job, const LaunchOptions& options)
      : job_(job),
        options_(options),
        own_(std::make_shared<OwnMpiRank>(job)),
        ranks_(static_cast<std::size_t>(job.rank_count())),
        pids_(ranks_.size(), 0),
        watchdog_(ranks_, options_) {}

  std::optional<RankFailure> run(const RankBody& body) {
    const CrashWatch crash_watch;
    std::thread thread = start_rank(own_, body);
    try {
      while (!is_given_up_ && !(is_over_ && own_->communicator.is_idle())) {
        own_->communicator.move([this](RankId from, Frame&& frame) { take(from, frame); });
        tell();
        is_first() ? watch() : watch_first();
      }
    } catch (...) {
      failure_ = failure_of_exception();
      failure_->rank = job_.rank();
      is_given_up_ = true;
    }
    const bool is_stuck = !own_->progress.is_finished || is_given_up_;
    own_->progress.is_finished ? thread.join() : thread.detach();
    if (failure_) failure_->is_stuck = is_stuck;
    return failure_;
  }

 private:
  bool is_first() const { return job_.rank() == RankId(0); }

  void post(RankId to, FrameKind kind, std::span<const std::byte> bytes = {}) {
    own_->communicator.post(to, kind, {}, {}, bytes);
  }

  /// Sends rank 0 the progress of this rank, and once how it ended.
  void tell() {
    const Clock::time_point now = Clock::now();
    const bool ends = own_->progress.is_finished && !has_told_end_;
    if (!ends && now - told_ < kReportInterval) return;
    told_ = now;
    const RankProgress& progress = own_->progress;
    if (!has_told_end_) post(RankId(0), FrameKind::kProgress, bytes_of(progress, home_));
    const auto fail = [&](RankFailure failure) {
      failure.rank = job_.rank();
      failure.task = TaskId(progress.task.load());
      post(RankId(0), FrameKind::kFailed, bytes_of(failure));
    };
    if (is_stopped_by_interruption(options_) && !has_told_interruption_) {
      has_told_interruption_ = true;
      fail({.kind = FailureKind::kInterruption, .cause = "interrupted"});
      stop_own_rank();
    }
    if (!ends) return;
    has_told_end_ = true;
    if (own_->end.failure) fail(*own_->end.failure);
    const std::byte was_stopped{own_->end.was_stopped};
    post(RankId(0), FrameKind::kFinished, {&was_stopped, 1});
  }

  void stop_own_rank() {
    own_->progress.must_stop = true;
    own_->communicator.close();
  }

  void take(RankId from, const Frame& frame) {
    switch (frame.kind) {
      case FrameKind::kStop:  // from rank 0
        return stop_own_rank();
      case FrameKind::kReport:
        if (auto failure = deliver_report(options_, from, frame.bytes)) {
          failure->task = TaskId(ranks_[from.index()].task.load());
          fail(std::move(*failure));
        }
        return;
      case FrameKind::kFailed:
        return fail(failure_from(frame.bytes));
      case FrameKind::kProgress:
        return note_progress(from, frame.bytes);
      case FrameKind::kKeepalive:  // from rank 0
        ++frames_of_first_;
        return;
      case FrameKind::kFinished:
        if (!is_first()) {
          is_over_ = true;  // all ranks have ended
          return;
        }
        if (frame.bytes.front() != std::byte{0} && !stopped_) stopped_ = from;
        ranks_[from.index()].is_finished = true;
        return;
      case FrameKind::kMessage:
      case FrameKind::kInterrupted:
        break;
    }
    MW_CHECK(false);
  }

  /// Of the other ranks: rank 0 must show life.
  void watch_first() {
    if (failure_ || idle_of_first_.since_change(frames_of_first_) <= 2 * options_.watchdog_timeout)
      return;
    failure_ = {.kind = FailureKind::kHang, .rank = RankId(0), .cause = std::string(kNoAnswer)};
    stop_own_rank();
    is_given_up_ = true;
  }

  // ---- rank 0 ----

  void note_progress(RankId from, std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    read_progress(reader, ranks_[from.index()]);
    ++frames_[from.index()];
    const auto pid = static_cast<pid_t>(reader.number<std::uint32_t>());
    pids_[from.index()] = reader.text() == home_ ? pid : 0;
  }

  /// mpirun stops all processes when one dies without reporting which; find it by its PID.
  std::optional<RankFailure> find_dead() const {
    for (std::size_t i = 0; i < pids_.size(); ++i)
      if (pids_[i] > 0 && !ranks_[i].is_finished && ::kill(pids_[i], 0) != 0)
        return RankFailure{.kind = FailureKind::kDeath,
                           .rank = RankId(i),
                           .task = TaskId(ranks_[i].task.load()),
                           .cause = std::string(kProcessLost)};
    return std::nullopt;
  }

  void watch() {
    const Clock::time_point now = Clock::now();
    if (now - watched_ < kReportInterval / 2) return;
    watched_ = now;
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      post(RankId(i), FrameKind::kKeepalive);
      const auto idle = idle_[i].since_change(frames_[i]);
      ranks_[i].is_unresponsive = !ranks_[i].is_finished && idle > options_.watchdog_timeout / 2;
    }
    if (std::optional<RankFailure> dead = find_dead()) fail(std::move(*dead));
    if (!failure_)
      if (std::optional<RankFailure> failure = watchdog_.poll()) fail(std::move(*failure));
    std::size_t finished = 0;
    for (const RankProgress& rank : ranks_) finished += rank.is_finished ? 1 : 0;
    if (finished == ranks_.size() && !is_over_) {
      is_over_ = true;
      if (!failure_ && stopped_) failure_ = stopped_without_reason(*stopped_);
      for (std::size_t i = 1; i < ranks_.size(); ++i) post(RankId(i), FrameKind::kFinished);
    }
    const bool is_short = failure_ && (failure_->kind == FailureKind::kInterruption ||
                                       failure_->kind == FailureKind::kHang);
    const auto grace = is_short
                           ? std::min<Clock::duration>(kShortGrace, options_.watchdog_timeout / 4)
                           : Clock::duration(options_.watchdog_timeout / 4);
    if (failure_ && !is_over_ && (now - failed_ > grace || failure_->kind == FailureKind::kDeath))
      is_given_up_ = true;
  }

  void fail(RankFailure failure) {
    // mpirun interrupts all processes when one has died.
    if (failure.kind == FailureKind::kInterruption)
      if (std::optional<RankFailure> dead = find_dead()) failure = std::move(*dead);
    if (failure_) return;
    failure_ = std::move(failure);
    failed_ = Clock::now();
    for (std::size_t i = 1; i < ranks_.size(); ++i) post(RankId(i), FrameKind::kStop);
    stop_own_rank();
  }

  MpiJob& job_;
  const LaunchOptions& options_;
  std::shared_ptr<OwnMpiRank> own_;
  Clock::time_point told_, watched_, failed_;
  bool has_told_end_ = false, has_told_interruption_ = false;
  bool is_over_ = false;
  bool is_given_up_ = false;  ///< a rank does not stop, or is dead
  std::vector<RankProgress> ranks_;
  const std::string home_ = home_of_pids();
  std::vector<pid_t> pids_;  ///< of ranks on this host; 0: on another one, or unknown
  std::vector<std::int64_t> frames_ = std::vector<std::int64_t>(ranks_.size());  ///< of progress
  std::vector<IdleTimer> idle_ = std::vector<IdleTimer>(ranks_.size());
  std::int64_t frames_of_first_ = 0;  ///< frames that rank 0 sends to show life
  IdleTimer idle_of_first_;
  Watchdog watchdog_;
  std::optional<RankId> stopped_;
  std::optional<RankFailure> failure_;
};

}  // namespace

std::optional<RankFailure> run_mpi(int ranks, const RankBody& body, const LaunchOptions& options) {
  MW_CHECK(options.mpi != nullptr && options.mpi->rank_count() == ranks);
  return MpiLaunch(*options.mpi, options).run(body);
}

}  // namespace meshwright
