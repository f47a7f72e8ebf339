#include "tests/validation/typical_step.hpp"

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "simulator/engine/simulate.hpp"

namespace meshwright {

Ticks typical_step(const TaskGraph& graph, std::span<const TaskTimes> steps,
                   const CostModel& costs) {
  MW_CHECK(!steps.empty());
  const std::vector<WorkPrice> prices = price_works(graph.parts, graph.works, costs);
  std::vector<Ticks> durations(graph.tasks.size());
  std::vector<Ticks> measured(steps.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.stream == Stream::kCompute) {
      std::ranges::transform(steps, measured.begin(),
                             [i](const TaskTimes& step) { return step.end[i] - step.start[i]; });
      std::sort(measured.begin(), measured.end());
      durations[i] = measured[measured.size() / 2];
    } else if (task.kind != TaskKind::kReceive) {
      durations[i] = prices[task.work.index()].duration;
    }
  }
  TaskTimes times;
  simulate(graph, prices, durations, times);
  return makespan(times);
}

}  // namespace meshwright
