#include "simulator/engine/step_bounds.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

StepBounds bounds_of_all(const TaskGraph& graph, const TaskTimes& times) {
  MW_CHECK(!graph.tasks.empty());
  const Ticks start = *std::min_element(times.start.begin(), times.start.end());
  const Ticks end = *std::max_element(times.end.begin(), times.end.end());
  return {.from = std::vector<Ticks>(graph.ranks.size(), start),
          .to = std::vector<Ticks>(graph.ranks.size(), end),
          .time = end - start};
}

}  // namespace

StepBounds step_bounds(const TaskGraph& graph, const TaskTimes& times,
                       const std::optional<StepInWindow>& step) {
  if (!step) return bounds_of_all(graph, times);
  const int first = step->first_microbatch, behind = first + step->microbatches;
  StepBounds bounds;
  bounds.from.resize(graph.ranks.size());
  bounds.to.resize(graph.ranks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.kind != TaskKind::kOptimizer) continue;
    const auto rank = static_cast<std::size_t>(task.rank);
    if (task.microbatch < first) bounds.from[rank] = std::max(bounds.from[rank], times.end[i]);
    if (task.microbatch < behind) bounds.to[rank] = std::max(bounds.to[rank], times.end[i]);
  }
  for (std::size_t r = 0; r < bounds.from.size(); ++r) {
    MW_CHECK(bounds.from[r] < bounds.to[r]);
    bounds.time = std::max(bounds.time, bounds.to[r] - bounds.from[r]);
  }
  return bounds;
}

}  // namespace meshwright
