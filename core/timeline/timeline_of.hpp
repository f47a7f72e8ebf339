/// Converts task times to a Timeline; used by the simulator (predicted) and executor (measured).
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline.hpp"

namespace meshwright {

struct TaskTimes {
  std::vector<Ticks> start, end;  ///< by task
  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

/// One span per task, with its stable name; flows from sends to receives; memory samples of every
/// rank at each change, computed from the works. The caller sets origin and clock. O(tasks).
Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times);
/// The same for an interrupted step: only completed tasks and the memory that they changed.
Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times,
                     const std::vector<bool>& is_done);

}  // namespace meshwright
