/// Fault injection for testing: `run --inject-fault`.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/ids.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

enum class FaultKind : std::uint8_t {
  kDie,     ///< the rank's process is killed (SIGKILL)
  kAbort,   ///< the rank crashes (SIGABRT)
  kExit,    ///< the rank's process exits without reporting a status
  kHang,    ///< the rank makes no further progress
  kThrow,   ///< the rank reports an error
  kMemory,  ///< the rank is out of memory
  kNan      ///< a weight of the task's stage becomes NaN
};

/// A fault injected when the task is about to start in training step `step`.
struct Fault {
  TaskId task;
  FaultKind kind = FaultKind::kThrow;
  int step = 0;
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// Parses "rank=1,task=F0,kind=die", optionally with "step=3" (default: the first). The task is
/// given by its timeline name or a suffix of it: the first task of the rank with this suffix.
/// Throws InputError that lists the valid values.
Fault fault_from_text(const std::string& text, const TaskGraph& graph);

/// All kinds except kNan, which the training code injects into the weights. Never returns.
[[noreturn]] void inject(FaultKind kind);

}  // namespace meshwright
