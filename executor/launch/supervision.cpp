#include "executor/launch/supervision.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/value_named.hpp"
#include "executor/transport/frame_stream.hpp"

namespace meshwright {
namespace {

constexpr std::array kCrashes{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

thread_local RankProgress* rank_of_this_thread = nullptr;

/// Only an atomic store and pause(), which are async-signal-safe.
void keep_crashed_thread(int signal) {
  if (rank_of_this_thread != nullptr) {
    rank_of_this_thread->signal.store(signal);
    for (;;) ::pause();
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

/// Watchdog timeouts that file I/O may take.
constexpr int kDiskFactor = 600;

/// Of write_progress().
constexpr std::size_t kProgressSize = sizeof(std::int64_t) + 2 * sizeof(std::int32_t) + 2;

RankFailure failure_of(FailureKind kind, const Diagnostic& diagnostic) {
  return {
      .kind = kind, .cause = diagnostic.where + ": " + diagnostic.what, .hint = diagnostic.hint};
}

}  // namespace

std::string_view name_of(RankKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"threads", "processes", "mpi", "job"};
  return entry_of(kNames, kind);
}

std::optional<RankFailure> run_ranks(RankKind kind, int ranks, const RankBody& body,
                                     const LaunchOptions& options) {
  switch (kind) {
    case RankKind::kThreads:
      return run_threads(ranks, body, options);
    case RankKind::kProcesses:
      return run_processes(ranks, body, options);
    case RankKind::kMpi:
      return run_mpi(ranks, body, options);
    case RankKind::kJob:
      return run_job(ranks, body, options);
  }
  MW_CHECK(false);
}

RankFailure out_of_memory() {
  return {.kind = FailureKind::kSystemError,
          .cause = "out of memory",
          .hint = "use a smaller plan, or raise the limit (ulimit -v)"};
}

RankFailure failure_of_exception() {
  try {
    throw;
  } catch (const RuntimeFailure& error) {
    return failure_of(FailureKind::kSystemError, error.diagnostic());
  } catch (const InputError& error) {
    return failure_of(FailureKind::kError, error.diagnostics().front());
  } catch (const std::bad_alloc&) {
    try {
      return out_of_memory();
    } catch (const std::bad_alloc&) {
      return {.kind = FailureKind::kSystemError, .cause = "out of memory"};  // allocates nothing
    }
  } catch (const std::system_error& error) {  // of std::thread
    return {.kind = FailureKind::kSystemError,
            .cause = fmt::format("cannot start a thread: {}", error.code().message()),
            .hint = "check the limits on processes and memory (ulimit -u, ulimit -v)"};
  } catch (const std::exception& error) {
    return {.cause = error.what()};
  } catch (...) {
    return {.cause = "unknown exception"};
  }
}

BodyResult run_body(const RankBody& body, Communicator& communicator, RankProgress& progress) {
  try {
    body(communicator, progress);
    return {};
  } catch (const PeerFailure&) {
    return {.was_stopped = true, .failure = {}};
  } catch (...) {
    return {.was_stopped = false, .failure = failure_of_exception()};
  }
}

std::optional<RankFailure> deliver_report(const LaunchOptions& options, RankId rank,
                                          std::span<const std::byte> report) {
  try {
    if (options.on_report) options.on_report(rank, report);
    return std::nullopt;
  } catch (...) {
    RankFailure failure = failure_of_exception();
    failure.rank = rank;
    return failure;
  }
}

bool is_stopped_by_interruption(const LaunchOptions& options) {
  if (options.interrupted == nullptr || !options.interrupted->load()) return false;
  if (options.finish_step == nullptr) return true;
  if (options.interrupted_again != nullptr && *options.interrupted_again) return true;
  options.finish_step->store(true);
  return false;
}

void write_progress(ByteWriter& writer, const RankProgress& progress) {
  writer.number(progress.beats.load());
  writer.number(progress.task.load());
  writer.number(progress.signal.load());
  writer.number(static_cast<std::uint8_t>(progress.is_waiting.load()));
  writer.number(static_cast<std::uint8_t>(progress.is_on_disk.load()));
}

void read_progress(ByteReader& reader, RankProgress& known) {
  if (reader.size() < kProgressSize) throw InvalidFrame();
  known.beats = reader.number<std::int64_t>();
  known.task = reader.number<std::int32_t>();
  known.signal = reader.number<std::int32_t>();
  known.is_waiting = reader.number<std::uint8_t>() != 0;
  known.is_on_disk = reader.number<std::uint8_t>() != 0;
}

std::vector<std::byte> bytes_of(const RankFailure& failure) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(failure.kind));
  writer.number(failure.rank.value);
  writer.number(failure.task.value);
  writer.text(failure.cause);
  writer.text(failure.hint);
  return writer.take();
}

RankFailure failure_from(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  RankFailure failure;
  const auto kind = reader.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(FailureKind::kInterruption)) throw InvalidFrame();
  failure.kind = static_cast<FailureKind>(kind);
  failure.rank = RankId(reader.number<std::int32_t>());
  failure.task = TaskId(reader.number<std::int32_t>());
  failure.cause = reader.text();
  failure.hint = reader.text();
  return failure;
}

RankFailure stopped_without_reason(RankId rank) {
  return {
      .kind = FailureKind::kDeath, .rank = rank, .cause = "stopped although no rank had failed"};
}

SharedProgress::SharedProgress(int ranks)
    : count_(static_cast<std::size_t>(ranks)),
      memory_(::mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
  if (memory_ == MAP_FAILED) throw std::bad_alloc();
  for (std::size_t i = 0; i < count_; ++i) new (&all()[i]) RankProgress();
}
SharedProgress::~SharedProgress() { ::munmap(memory_, size()); }

std::string signal_text(int signal) {
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

std::chrono::steady_clock::duration IdleTimer::since_change(std::int64_t count) {
  constexpr std::chrono::milliseconds kLongestGap{200};
  const auto now = std::chrono::steady_clock::now();
  const auto passed = now - std::exchange(asked_at_, now);
  idle_ = count == std::exchange(count_, count)
              ? idle_ + std::min<std::chrono::steady_clock::duration>(passed, kLongestGap)
              : std::chrono::steady_clock::duration();
  return idle_;
}

std::optional<RankFailure> Watchdog::poll() {
  if (is_stopped_by_interruption(options_))
    return RankFailure{
        .kind = FailureKind::kInterruption, .rank = RankId(0), .cause = "interrupted"};
  std::int64_t beats = 0;
  bool is_on_disk = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (const int signal = ranks_[i].signal.load())
      return RankFailure{.kind = FailureKind::kDeath,
                         .rank = RankId(i),
                         .task = TaskId(ranks_[i].task.load()),
                         .cause = "crashed with " + signal_text(signal)};
    beats += ranks_[i].beats.load();
    is_on_disk |= ranks_[i].is_on_disk.load() && !ranks_[i].is_unresponsive.load();
  }
  const Clock::time_point now = Clock::now();
  const Clock::duration passed = now - std::exchange(polled_at_, now);
  const auto limit = (is_on_disk ? kDiskFactor : 1) * options_.watchdog_timeout;
  const bool has_progressed = beats != std::exchange(beats_, beats);
  const bool has_changed = is_on_disk != std::exchange(is_on_disk_, is_on_disk);
  if (has_progressed || has_changed)
    idle_ = {};
  else
    idle_ += std::min<Clock::duration>(passed, options_.watchdog_timeout / 4);
  return idle_ > limit ? std::optional(hang_failure()) : std::nullopt;
}

/// The rank whose process does not answer, else the one that neither waits for another one nor has
/// finished, or the first one of a deadlock.
RankFailure Watchdog::hang_failure() const {
  std::size_t culprit = ranks_.size();
  for (std::size_t i = ranks_.size(); i-- > 0;)
    if (!ranks_[i].is_waiting.load() && !ranks_[i].is_finished.load()) culprit = i;
  for (std::size_t i = ranks_.size(); i-- > 0;)
    if (ranks_[i].is_unresponsive.load()) culprit = i;
  for (std::size_t i = 0; culprit == ranks_.size(); ++i)
    if (!ranks_[i].is_finished.load() || i + 1 == ranks_.size()) culprit = i;
  const RankProgress& rank = ranks_[culprit];
  std::string_view cause = "hung";
  if (rank.is_on_disk.load()) cause = "its file system does not answer";
  if (rank.is_unresponsive.load()) cause = kNoAnswer;
  const auto limit = (is_on_disk_ ? kDiskFactor : 1) * options_.watchdog_timeout;
  return {.kind = FailureKind::kHang,
          .rank = RankId(culprit),
          .task = TaskId(rank.task.load()),
          .cause = fmt::format("{}: no rank made progress for {:g} s", cause,
                               std::chrono::duration<double>(limit).count())};
}

CrashWatch::CrashWatch() {
  for (const int crash : kCrashes) {
    struct sigaction now {};
    sigaction(crash, nullptr, &now);
    if (now.sa_handler != SIG_DFL) continue;
    struct sigaction keep {};
    keep.sa_handler = keep_crashed_thread;
    sigaction(crash, &keep, nullptr);
  }
}

CrashWatch::~CrashWatch() {
  for (const int crash : kCrashes) {
    struct sigaction now {};
    sigaction(crash, nullptr, &now);
    if (now.sa_handler == keep_crashed_thread) ::signal(crash, SIG_DFL);
  }
}

void CrashWatch::set_rank_of_this_thread(RankProgress* progress) { rank_of_this_thread = progress; }

}  // namespace meshwright
