/// Variation of step times: stragglers and jitter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "simulator/engine/step_bounds.hpp"

namespace meshwright {

struct Straggler {
  RankId rank;
  double factor = 1;  ///< multiplies all its compute times, above zero
  friend bool operator==(const Straggler&, const Straggler&) = default;
};

/// Every compute task, message and collective takes its price times exp(sigma z - sigma^2 / 2), z
/// standard normal: log-normal with the price as its mean. z is a pure function of (seed, draw,
/// TaskId); the members of a collective share one.
struct Variation {
  std::vector<Straggler> stragglers = {};  ///< ranks of the graph, each at most once
  double jitter = 0;                       ///< sigma, 0 or above: 0.05 is about 5 %
  std::uint64_t seed = 1;
  friend bool operator==(const Variation&, const Variation&) = default;
};

/// By rank: the factor of its straggler, or 1.
std::vector<double> slowness_of(std::span<const RankInfo> ranks,
                                std::span<const Straggler> stragglers);

/// Fills `durations`, one per task, reusing its memory. The jitter is that of the job only if the
/// graph contains all ranks (RankSet::kAll): the slowest of eight replicas is slower than a single
/// representative. O(tasks).
void vary_durations(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const Variation& variation, std::uint64_t draw, std::vector<Ticks>& durations);

/// Step times of draws first … first + draws - 1; of `step` if the graph covers several steps. A
/// draw depends only on its number, so ranges of draws can be computed in parallel. O(draws *
/// (tasks + dependencies)); 24 bytes per task.
std::vector<Ticks> draw_steps(const TaskGraph& graph, std::span<const WorkPrice> prices,
                              const Variation& variation, int draws, std::uint64_t first = 0,
                              const std::optional<StepInWindow>& step = {});

/// The q-quantile (0 < q <= 1): the smallest value with at least a share q of the values at or
/// below it.
Ticks quantile(std::vector<Ticks> values, double q);
Ticks mean(std::span<const Ticks> values);

}  // namespace meshwright
