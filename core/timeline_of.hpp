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
/// Of a step that came to no end: spans of tasks that are done alone, and the memory that they
/// changed.
Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times,
                     const std::vector<bool>& is_done);

}  // namespace meshwright
