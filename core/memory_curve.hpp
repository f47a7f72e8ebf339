/// Memory of every rank over time, from what the works of its tasks say.
#pragma once

#include <cstddef>
#include <vector>

#include "core/memory_amounts.hpp"
#include "core/task_graph.hpp"
#include "core/timeline_of.hpp"
#include "core/units.hpp"

namespace meshwright {

/// What is held right after `time`.
struct MemoryLevel {
  Ticks time;
  MemoryAmounts amounts;
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

/// Levels of every rank of the graph, one per change, from time zero on; tasks that are not done
/// change nothing (`is_done` empty: all are). O(tasks).
std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph, const TaskTimes& times,
                                                    const std::vector<bool>& is_done = {});

}  // namespace meshwright
