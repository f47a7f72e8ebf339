#include "executor/measured_timeline.hpp"

#include "core/check.hpp"
#include "core/timeline_steps.hpp"

namespace meshwright {

Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run, TimelineClock clock) {
  MW_CHECK(!run.steps.empty());
  std::vector<Timeline> steps;
  for (const MeasuredStep& step : run.steps) {
    steps.push_back(timeline_of(graph, step.times));
    steps.back().memory.clear();  // it says what was predicted
  }
  steps.front().origin = TimelineOrigin::kMeasured;
  steps.front().clock = clock;
  // Counted peaks are by rank id; samples stand by rank id too.
  for (std::size_t rank = 0; rank < run.peak_memory.size(); ++rank)
    if (total(run.peak_memory[rank]).value > 0)
      steps.front().memory.push_back({.time = Ticks(),
                                      .rank = static_cast<std::int32_t>(rank),
                                      .amounts = run.peak_memory[rank]});
  return join_steps(steps);
}

}  // namespace meshwright
