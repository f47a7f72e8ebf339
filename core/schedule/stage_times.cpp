#include "core/schedule/stage_times.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {

StageTimes uniform_times(int stages, Ticks forward, Ticks backward_input, Ticks backward_weight) {
  MW_CHECK(stages >= 0);
  const auto count = static_cast<std::size_t>(stages);
  StageTimes times;
  times.forward.assign(count, forward);
  times.backward_input.assign(count, backward_input);
  times.backward_weight.assign(count, backward_weight);
  return times;
}

Ticks latency_between(const StageTimes& times, StageId from, StageId to) {
  if (times.boundary_latency.empty()) return times.latency;
  const std::size_t boundary = std::min(from, to).index();
  MW_CHECK(boundary < times.boundary_latency.size());
  return times.boundary_latency[boundary];
}

}  // namespace meshwright
