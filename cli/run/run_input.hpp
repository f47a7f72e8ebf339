/// Inputs of `run` other than the job, and checks that this machine can run it.
#pragma once

#include "cli/run/run_flags.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {

inline constexpr int kDefaultSteps = 5;

/// The steps of a run within the training that it is a part of.
struct TrainingLength {
  std::int64_t first_step = 0;  ///< steps of earlier runs
  int steps = kDefaultSteps;    ///< of this run
  std::int64_t total = kDefaultSteps;
};
/// InputError if --steps and --total-steps leave nothing to do after `first_step` steps.
TrainingLength training_length(const RunFlags& flags, std::int64_t first_step);

/// One InputError with every reason why the plan cannot be run.
void check_plan(const Job& job, RankKind ranks);
/// RuntimeFailure if `ranks_here` of the job's ranks do not fit in the memory of this machine, or
/// of the GPUs that they use.
void check_memory(const TaskGraph& graph, const Strategy& strategy, const RunFlags& flags,
                  int ranks_here);

/// Checked before a long run: RuntimeFailure if the directory of `path` does not exist or is not
/// writable. Accepts an empty path, "-" and devices.
void check_folder_of(const std::string& flag, const std::string& path);
/// The same; in addition, `path` must not be a directory itself.
void check_place_of(const std::string& flag, const std::string& path);

/// links_of(): UsageError if --links conflicts with --clock.
TimelineClock clock_of(const RunFlags& flags);
LinkTime links_of(const RunFlags& flags);
RankKind ranks_of(const RunFlags& flags);

/// Watchdog timeout (--patience): time without progress before a rank is declared hung.
std::chrono::milliseconds watchdog_timeout_of(const RunFlags& flags);

}  // namespace meshwright
