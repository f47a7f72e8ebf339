/// Memory of every rank over time, computed from the works of its tasks.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

/// Memory held right after `time`.
struct MemoryLevel {
  Ticks time;
  MemoryAmounts amounts;
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

/// Memory levels of every rank of the graph, one per change, starting at time zero. Tasks that are
/// not done are ignored (`is_done` empty: all are done). O(tasks).
std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph, const TaskTimes& times,
                                                    const std::vector<bool>& is_done = {});

}  // namespace meshwright
