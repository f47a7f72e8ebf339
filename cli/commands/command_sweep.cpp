/// `sweep` of the program: in this process, or spread over the ranks of mpirun or srun.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/run/run_failed.hpp"
#include "cli/sweep/sweep_run.hpp"
#include "cli/terminal/interrupt.hpp"
#include "executor/launch/guarded_process.hpp"
#include "executor/launch/launch.hpp"
#include "executor/launch/mpi_job.hpp"
#include "executor/launch/supervision.hpp"
#include "executor/runs/same_run.hpp"
#include "planner/parallel/parallel_for.hpp"

namespace meshwright {
namespace {

constexpr const char* kSweepPlace = "mpirun meshwright sweep";
/// Time without any evaluated point before a rank is declared hung. Processes that die are noticed
/// at once.
constexpr std::chrono::minutes kLongestPoint{10};
constexpr MessageTag kAssignmentTag{Channel::kControl, 100};
/// Assignments that a rank has in advance, so that it does not wait for the next one.
constexpr int kAhead = 2;

/// Points to evaluate next; none: the sweep is complete.
struct Assignment {
  std::uint32_t count = 0;
  std::array<std::uint32_t, 32> points{};
};

/// Of rank 0: hands out the missing points, in order. Larger assignments first, so that few
/// messages are needed, and small ones at the end, so that all ranks finish at about the same time.
class Assignments {
 public:
  Assignments(std::vector<std::size_t> missing, int ranks, int threads)
      : missing_(std::move(missing)),
        ranks_(static_cast<std::size_t>(ranks)),
        least_(std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, kMost)) {}

  /// Called by the body of rank 0; requests of other ranks may come before.
  void start(Communicator& communicator) {
    const std::lock_guard lock(mutex_);
    communicator_ = &communicator;
    for (const RankId rank : std::exchange(waiting_, {})) send(rank);
  }
  void request(RankId rank) {
    const std::lock_guard lock(mutex_);
    communicator_ == nullptr ? waiting_.push_back(rank) : send(rank);
  }

 private:
  static constexpr std::size_t kMost = std::tuple_size_v<decltype(Assignment::points)>;

  void send(RankId rank) {
    const std::size_t left = missing_.size() - next_;
    const std::size_t count = std::min(left, std::clamp(left / (4 * ranks_), least_, kMost));
    Assignment assignment{.count = static_cast<std::uint32_t>(count)};
    for (std::size_t i = 0; i < count; ++i)
      assignment.points[i] = static_cast<std::uint32_t>(missing_[next_++]);
    communicator_->send(rank, kAssignmentTag, std::as_bytes(std::span(&assignment, 1)), {});
  }

  std::mutex mutex_;  ///< guards all below
  std::vector<std::size_t> missing_;
  std::size_t next_ = 0, ranks_, least_;
  Communicator* communicator_ = nullptr;
  std::vector<RankId> waiting_;
};

/// Everything that a rank uses. Its thread may outlive the command.
struct SweepRank {
  SweepRun run;  ///< of ranks other than 0 only the study
  int threads = 1;
  std::optional<Assignments> assignments;  ///< rank 0
};

/// Ranks on one host share its cores, of which mpirun may have bound this process to some.
int threads_of_rank(const SweepFlags& flags, int ranks_here) {
  if (flags.threads.value_or(0) > 0) return *flags.threads;
  const auto cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return std::max(1, std::min(thread_count(0), cores / std::max(1, ranks_here)));
}

/// Reports every point as a line, and an empty text to request the next assignment.
void evaluate_assignments(const std::shared_ptr<SweepRank>& rank, Communicator& communicator,
                          RankProgress& progress) {
  const SweepStudy& study = rank->run.study;
  check_same_run(communicator, study.identity);
  if (rank->assignments) rank->assignments->start(communicator);
  const std::string key = key_of(study);
  const PointEvaluation evaluation{
      .threads = rank->threads,
      .on_point =
          [&](std::size_t i, const SweepPoint& point) {
            const std::string line = line_of(key, i, point);
            communicator.report(std::as_bytes(std::span(line)));
            ++progress.beats;
          },
      .canceled = [&] { return progress.must_stop || is_interrupted(); }};
  for (int i = 0; i < kAhead; ++i) communicator.report({});
  for (;;) {
    Assignment assignment;
    communicator.receive(RankId(0), kAssignmentTag,
                         std::as_writable_bytes(std::span(&assignment, 1)));
    if (assignment.count == 0) return;
    std::vector<std::size_t> points(assignment.points.begin(),
                                    assignment.points.begin() + assignment.count);
    std::erase_if(points, [&](std::size_t i) { return i >= study.points.size(); });
    evaluate_points(study, points, evaluation);
    communicator.report({});
  }
}

/// On rank 0.
void take_report(SweepRank& rank, RankId from, std::span<const std::byte> bytes) {
  if (bytes.empty()) return rank.assignments->request(from);
  const std::string_view line(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  SweepRun& run = rank.run;
  const std::size_t index =
      take_line(line, fmt::format("rank {}", from.value), key_of(run.study), run.study);
  run.points_file.append(index, run.study.points[index]);
}

/// MPI of this process, from start to end. Leaked if a thread cannot be stopped.
struct MpiSweep {
  SharedProgress progress{1};
  std::unique_ptr<MpiJob> mpi;
  std::shared_ptr<SweepRank> rank = std::make_shared<SweepRank>();
  bool is_first() const { return mpi->rank() == RankId(0); }
};

void start(MpiSweep& sweep, int processes) {
  sweep.mpi = start_mpi(sweep.progress.all().front());
  if (sweep.mpi->rank_count() != processes)
    throw RuntimeFailure(
        {kSweepPlace,
         fmt::format("{} processes were started, but MPI connects only {} of them", processes,
                     sweep.mpi->rank_count()),
         "start them with mpirun of the MPI library of this program, or with srun --mpi=pmix"});
}

/// An error of one process ends all. False: rank 0 reports it.
bool load_together(MpiSweep& sweep, const SweepFlags& flags) {
  std::exception_ptr problem;
  std::string text;
  SweepRank& rank = *sweep.rank;
  try {
    if (sweep.is_first())
      rank.run = load_sweep(flags);
    else
      rank.run.study = load_study(flags, /*warns=*/false);
  } catch (const InputError& error) {
    problem = std::current_exception();
    text = error.diagnostics().front().where + ": " + error.diagnostics().front().what;
  } catch (const std::exception& error) {
    problem = std::current_exception();
    text = error.what();
  }
  const std::string first = sweep.mpi->first_problem(text);
  if (first.empty()) {
    rank.threads = threads_of_rank(flags, sweep.mpi->ranks_here());
    if (sweep.is_first())
      rank.assignments.emplace(rank.run.missing, sweep.mpi->rank_count(), rank.threads);
    return true;
  }
  if (!sweep.is_first()) return false;
  if (problem) std::rethrow_exception(problem);
  throw RuntimeFailure({kSweepPlace, first, "make the input files readable on every node"});
}

std::string continue_hint(const SweepRun& run) {
  if (!run.points_file.exists()) return "use --output or --points to continue after a failure";
  return "run the command again: it continues from " + run.points_file.path();
}

/// After the child that runs a rank has ended: a killed one cannot report it.
Outcome after_child(const ChildStatus& end, RankId rank) {
  if (end.signal == 0 || end.was_terminated) return {.text = {}, .exit_code = end.exit_code};
  throw RunFailed({.rank = rank,
                   .task = "",
                   .cause = "was killed by " + signal_text(end.signal),
                   .hint = "check dmesg: Linux kills processes when memory runs out; run the "
                           "command again to continue"});
}

Outcome finish(MpiSweep& sweep, const std::optional<RankFailure>& failure,
               const SweepFlags& flags) {
  SweepRun& run = sweep.rank->run;
  if (failure && failure->kind != FailureKind::kInterruption)
    throw RunFailed({.rank = failure->rank,
                     .task = "",
                     .cause = failure->cause,
                     .hint = failure->hint.empty() ? continue_hint(run) : failure->hint,
                     .exit_code = failure->kind == FailureKind::kSystemError
                                      ? kExitMissingEnvironment
                                      : kExitRunFailed,
                     .leaves_a_thread = failure->is_stuck});
  return finish_sweep(run, flags);
}

/// How a process other than that of rank 0 ends: only that one prints.
Outcome finish_silently(const std::optional<RankFailure>& failure) {
  Outcome outcome;
  if (failure)
    outcome.exit_code =
        failure->kind == FailureKind::kInterruption ? kExitInterrupted : kExitRunFailed;
  return outcome;
}

Outcome run_sweep_under_mpi(const SweepFlags& flags, RankId own, int processes) {
  if (!is_built_with_mpi()) {
    if (own != RankId(0)) return {.text = {}, .exit_code = kExitMissingEnvironment};
    throw RuntimeFailure(
        {kSweepPlace,
         fmt::format("{} processes were started, but this program was built without MPI",
                     processes),
         "install Open MPI and rebuild, or start one process"});
  }
  auto sweep = std::make_unique<MpiSweep>();
  if (const std::optional<ChildStatus> end = run_in_child(kLongestPoint))
    return after_child(*end, own);
  start(*sweep, processes);
  if (!load_together(*sweep, flags)) return {};
  const PartialResults partial_results;
  const std::shared_ptr<SweepRank> rank = sweep->rank;
  const std::optional<RankFailure> failure = run_mpi(
      processes,
      [rank](Communicator& communicator, RankProgress& progress) {
        evaluate_assignments(rank, communicator, progress);
      },
      {.watchdog_timeout = kLongestPoint,
       .interrupted = interrupt_flag(),
       .on_report = [&](RankId from,
                        std::span<const std::byte> bytes) { take_report(*rank, from, bytes); },
       .mpi = sweep->mpi.get()});
  const bool leaves_a_thread = failure && failure->is_stuck;
  MpiSweep& kept = *sweep;
  if (leaves_a_thread) static_cast<void>(sweep.release());  // the thread still uses it
  Outcome outcome = kept.is_first() ? finish(kept, failure, flags) : finish_silently(failure);
  outcome.leaves_a_thread = leaves_a_thread;
  return outcome;
}

Outcome run_sweep(const SweepFlags& flags) {
  const int processes = processes_in_environment();
  const std::optional<RankId> rank = rank_in_environment();
  return rank && processes > 1 ? run_sweep_under_mpi(flags, *rank, processes)
                               : run_sweep_here(flags);
}

}  // namespace

Command sweep_command(CLI::App& app) { return make_command(app, add_sweep_command, run_sweep); }

}  // namespace meshwright
