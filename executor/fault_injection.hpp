/// Faults on purpose, to try what a run does about them: `run --inject-fault`.
#pragma once

#include <cstdint>
#include <string>

#include "core/ids.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

enum class FaultKind : std::uint8_t {
  kDie,    ///< the rank's process is killed (SIGKILL)
  kAbort,  ///< the rank crashes (SIGABRT)
  kExit,   ///< the rank's process ends, without a word
  kHang,   ///< the rank does nothing more
  kThrow,  ///< the rank reports an error
  kNan     ///< a weight of the task's stage becomes NaN
};

/// What goes wrong when the task is about to begin, in the training step `step`.
struct Fault {
  TaskId task;
  FaultKind kind = FaultKind::kThrow;
  int step = 0;
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// From "rank=1,task=F0,kind=die" and, if not the first, "step=3". The task by its name in
/// timelines, or by the end of it: the first of the rank whose name ends so. InputError with what
/// there is otherwise.
Fault fault_from_text(const std::string& text, const TaskGraph& graph);

/// All kinds but kNan, which is a matter of the weights. Returns never.
[[noreturn]] void commit(FaultKind kind);

}  // namespace meshwright
