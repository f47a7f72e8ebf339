/// Thrown if a rank of `run` failed: the rank, its task and the cause.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/flags/output_flags.hpp"
#include "core/base/error.hpp"
#include "core/base/ids.hpp"

namespace meshwright {

class RunFailed : public std::runtime_error {
 public:
  struct What {
    RankId rank;
    std::string task;  ///< its name in timelines; empty: outside any task
    std::string cause, hint;
    int exit_code = kExitRunFailed;
    /// A thread could not be stopped: the process must exit without running destructors.
    bool leaves_a_thread = false;
  };
  explicit RunFailed(What what) : std::runtime_error(what.cause), what_(std::move(what)) {}
  const What& details() const { return what_; }
  Diagnostic diagnostic() const {
    const std::string rank = "rank " + std::to_string(what_.rank.value);
    return {what_.task.empty() ? rank : rank + ", " + what_.task, what_.cause, what_.hint};
  }

 private:
  What what_;
};

}  // namespace meshwright
