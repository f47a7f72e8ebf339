/// What `run` needs beside the job: something to learn, and a machine that can carry it out.
#pragma once

#include "cli/commands.hpp"
#include "executor/train.hpp"

namespace meshwright {

/// --text, --tokens or the built-in text, as words of the model's vocabulary. InputError for files
/// that cannot be read and words that the model does not have.
TokenText read_words(const RunFlags& flags, const ModelGraph& model);

/// Everything that keeps the plan from being carried out, as one InputError.
void check_plan(const Job& job, RankKind ranks);
/// Memory of this machine for `ranks_here` of the job's ranks: InputError.
void check_memory(const TaskGraph& graph, int ranks_here);

/// A run is too long to find out at its end that its results have no place: InputError if the
/// folder of `path` is not there or may not be written. Empty, "-" and devices are left alone.
void check_folder_of(const std::string& flag, const std::string& path);
/// The same where `path` may not be a folder itself.
void check_place_of(const std::string& flag, const std::string& path);

/// Of clocks and links that do not go together: UsageError.
TimelineClock clock_of(const RunFlags& flags);
LinkTime links_of(const RunFlags& flags);
RankKind ranks_of(const RunFlags& flags);

/// How long a run may stand still before it is said to hang: --patience.
std::chrono::milliseconds patience_of(const RunFlags& flags);

}  // namespace meshwright
