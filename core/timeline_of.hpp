/// Task times → Timeline: what simulator (predicted) and executor (measured) both end with.
#pragma once

#include <vector>

#include "core/task_graph.hpp"
#include "core/timeline.hpp"
#include "core/units.hpp"

namespace meshwright {

struct TaskTimes {
  std::vector<Ticks> start, end;  ///< by task
  friend bool operator==(const TaskTimes&, const TaskTimes&) = default;
};

/// A span per task, named by its stable name; arrows from sends to receives; memory of every rank
/// at each change, from what the works say. Origin and clock are the caller's to set. O(tasks).
Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times);

}  // namespace meshwright
