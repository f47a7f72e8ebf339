#include "simulator/variation/variation.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/base/check.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/variation/random_numbers.hpp"

namespace meshwright {
namespace {

Ticks scaled(Ticks duration, double factor) {
  return Ticks(std::llround(static_cast<double>(duration.value) * factor));
}

/// Normal random numbers for successive tasks; one block of the generator yields four.
class TaskNoise {
 public:
  TaskNoise(const Variation& variation, std::uint64_t draw) : variation_(variation), draw_(draw) {}

  double factor(std::size_t task) {
    if (variation_.jitter == 0) return 1.0;
    const std::uint64_t block = task / 4;
    if (block != block_) {
      normals_ = four_normals(variation_.seed, draw_, block);
      block_ = block;
    }
    const double sigma = variation_.jitter;
    return std::exp(sigma * normals_[task % 4] - sigma * sigma / 2);
  }

 private:
  const Variation& variation_;
  std::uint64_t draw_;
  std::uint64_t block_ = ~std::uint64_t{0};
  std::array<double, 4> normals_{};
};

}  // namespace

std::vector<double> slowness_of(std::span<const RankInfo> ranks,
                                std::span<const Straggler> stragglers) {
  std::vector<double> factors(ranks.size(), 1.0);
  if (stragglers.empty()) return factors;
  std::unordered_map<std::int32_t, double> slow;
  for (const Straggler& straggler : stragglers) {
    MW_CHECK(straggler.factor > 0);
    slow[straggler.rank.value] = straggler.factor;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (const auto found = slow.find(ranks[r].rank.value); found != slow.end())
      factors[r] = found->second;
  return factors;
}

void vary_durations(const TaskGraph& graph, std::span<const WorkPrice> prices,
                    const Variation& variation, std::uint64_t draw, std::vector<Ticks>& durations) {
  MW_CHECK(prices.size() == graph.works.size());
  MW_CHECK(variation.jitter >= 0);
  const std::vector<double> factors = slowness_of(graph.ranks, variation.stragglers);
  TaskNoise noise(variation, draw);
  durations.resize(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    double factor = 1.0;
    if (task.kind == TaskKind::kCollective) {
      const CollectiveMembers& members = graph.collectives[static_cast<std::size_t>(task.partner)];
      factor = noise.factor(static_cast<std::size_t>(members.first));
    } else {
      factor = noise.factor(i);
    }
    if (is_compute(task.kind)) factor *= factors[static_cast<std::size_t>(task.rank)];
    const Ticks price = prices[task.work.index()].duration;
    durations[i] = factor == 1.0 ? price : scaled(price, factor);
  }
}

std::vector<Ticks> draw_steps(const TaskGraph& graph, std::span<const WorkPrice> prices,
                              const Variation& variation, int draws, std::uint64_t first,
                              const std::optional<StepInWindow>& step) {
  MW_CHECK(draws >= 0);
  std::vector<Ticks> steps(static_cast<std::size_t>(draws));
  std::vector<Ticks> durations;
  SimulatedTimes times;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    vary_durations(graph, prices, variation, first + i, durations);
    simulate(graph, prices, durations, times);
    steps[i] = step ? step_bounds(graph, times, step).time : makespan(times);
  }
  return steps;
}

Ticks quantile(std::vector<Ticks> values, double q) {
  MW_CHECK(!values.empty());
  MW_CHECK(q > 0 && q <= 1);
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  const auto place = static_cast<std::ptrdiff_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

Ticks mean(std::span<const Ticks> values) {
  MW_CHECK(!values.empty());
  double sum = 0;
  for (const Ticks value : values) sum += static_cast<double>(value.value);
  return Ticks(std::llround(sum / static_cast<double>(values.size())));
}

}  // namespace meshwright
