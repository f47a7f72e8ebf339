/// Times and memory of a task graph, checked task by task.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

/// With free links a task starts as soon as it can; with shared links it may wait for others.
enum class StartRule : std::uint8_t { kAtOnce, kNotBefore };

/// Tasks that start before or after the end of what they wait for, or take less than their price.
/// At most a few.
std::vector<std::string> wrong_starts(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                      const TaskTimes& times, StartRule rule);

/// Of the compute stream of a rank.
struct BusyTime {
  Ticks all;
  Ticks communication;  ///< collectives on it, alone or inside passes
};
std::vector<BusyTime> busy_times(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                 const TaskTimes& times);

/// Ranks whose reported peak is not the largest amount that the order of their tasks holds, or is
/// below a part of it.
std::vector<std::string> wrong_peaks(const TaskGraph& graph, const Evaluation& evaluation);

}  // namespace meshwright
