#include "executor/runs/measured_timeline.hpp"

#include "core/base/check.hpp"
#include "core/timeline/timeline_steps.hpp"

namespace meshwright {

Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run,
                           std::optional<std::size_t> only) {
  MW_CHECK(!run.steps.empty());
  MW_CHECK(!only || *only < run.steps.size());
  std::vector<Timeline> steps;
  const bool is_one_graph = run.steps.front().times.start.empty();  // flushless
  if (is_one_graph) {
    steps.push_back(timeline_of(graph, run.steps.back().times));
    steps.back().memory.clear();
    only = 0;
  }
  for (std::size_t i = 0; i < run.steps.size() && !is_one_graph; ++i) {
    if (only && *only != i) continue;
    steps.push_back(timeline_of(graph, run.steps[i].times));
    steps.back().memory.clear();
  }
  steps.front().origin = TimelineOrigin::kMeasured;
  for (std::size_t rank = 0; rank < run.peak_memory.size(); ++rank)
    if (total(run.peak_memory[rank]).value > 0)
      steps.front().memory.push_back({.time = Ticks(),
                                      .rank = static_cast<std::int32_t>(rank),
                                      .amounts = run.peak_memory[rank]});
  return only ? steps.front() : join_steps(steps);
}

}  // namespace meshwright
