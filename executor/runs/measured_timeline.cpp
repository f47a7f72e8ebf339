#include "executor/runs/measured_timeline.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/timeline/timeline_steps.hpp"

namespace meshwright {

Timeline measured_timeline(const TaskGraph& graph, const TrainingRun& run,
                           std::optional<std::size_t> only) {
  MW_CHECK(!run.steps.empty());
  MW_CHECK(!only || *only < run.steps.size());
  std::vector<Timeline> steps;
  const auto has_no_times = [](const MeasuredStep& step) { return step.times.start.empty(); };
  const bool is_one_graph =  // flushless
      run.steps.size() > 1 && std::all_of(run.steps.begin(), run.steps.end() - 1, has_no_times);
  if (is_one_graph) {
    steps.push_back(timeline_of(graph, run.steps.back().times));
    steps.back().memory.clear();
    only = 0;
  }
  for (std::size_t i = 0; i < run.steps.size() && !is_one_graph; ++i) {
    if (only ? *only != i : has_no_times(run.steps[i])) continue;
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

void MedianTimes::thin(std::vector<MeasuredStep>& steps) {
  constexpr std::size_t kMost = 64, kLeast = 32;
  with_times_.push_back(steps.size() - 1);
  if (with_times_.size() < kMost) return;
  std::vector<Ticks> durations;
  durations.reserve(steps.size());
  for (const MeasuredStep& step : steps) durations.push_back(step.duration);
  const auto middle = durations.begin() + std::ssize(durations) / 2;
  std::nth_element(durations.begin(), middle, durations.end());
  const auto distance = [&](std::size_t step) {
    return std::max(steps[step].duration, *middle) - std::min(steps[step].duration, *middle);
  };
  std::ranges::nth_element(with_times_, with_times_.begin() + kLeast, {}, distance);
  for (std::size_t i = kLeast; i < with_times_.size(); ++i) steps[with_times_[i]].times = {};
  with_times_.resize(kLeast);
}

}  // namespace meshwright
