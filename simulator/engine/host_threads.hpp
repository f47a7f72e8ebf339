/// The host thread of every rank, which launches the kernels of its compute tasks in order.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

class HostThreads {
 public:
  HostThreads(const TaskGraph& graph, std::span<const WorkPrice> prices)
      : graph_(graph), prices_(prices) {
    const auto launches = [](const WorkPrice& price) { return price.host > Ticks(); };
    if (std::any_of(prices.begin(), prices.end(), launches)) free_.resize(graph.ranks.size());
  }

  /// False if launching takes no time.
  bool is_needed() const { return !free_.empty(); }

  /// Launches task i, which would take `duration` on the device and end at `end`; returns when it
  /// ends. The compute tasks of a rank must be passed in order, their dependencies first. The host
  /// runs ahead of the device without limit, except where it waits for inputs of a task or for
  /// counts that the device computes.
  Ticks launch(std::size_t i, Ticks duration, Ticks end, const TaskTimes& times) {
    const Task& task = graph_.tasks[i];
    const WorkPrice& price = prices_[task.work.index()];
    Ticks& host = free_[static_cast<std::size_t>(task.rank)];
    if (price.launch_waits) host = std::max(host, inputs_of(i, times));
    const Ticks longer = duration - price.duration;
    const Ticks launched = host + price.since_launch + longer;
    host += price.host;
    if (price.host_since_start)
      host = std::max(host, end - duration + *price.host_since_start + longer);
    return std::max(end + price.stalls, launched);
  }

 private:
  /// When the inputs that the host waits for are there: messages, and for the optimizer everything.
  Ticks inputs_of(std::size_t i, const TaskTimes& times) const {
    const bool waits_for_all = graph_.tasks[i].kind == TaskKind::kOptimizer;
    Ticks arrived;
    for (const TaskId d : graph_.dependencies_of(TaskId(i)))
      if (waits_for_all || graph_.tasks[d.index()].kind == TaskKind::kReceive)
        arrived = std::max(arrived, times.end[d.index()]);
    return arrived;
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  std::vector<Ticks> free_;  ///< by rank: when its host has launched everything so far
};

}  // namespace meshwright
