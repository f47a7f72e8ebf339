#include "planner/sharding/memory_profile.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/indices.hpp"

namespace meshwright {
namespace {

/// The nodes in use at a time are part of those of a neighboring one unless nodes begin at it, and
/// the next event is an end.
std::vector<std::int64_t> busiest_times(const ShardingProblem& problem) {
  std::vector<std::pair<std::int64_t, bool>> events;  // time, is a begin; ends come first
  for (const ShardingNode& node : problem.nodes) {
    if (node.begin >= node.end) continue;
    events.emplace_back(node.begin, true);
    events.emplace_back(node.end, false);
  }
  std::ranges::sort(events);
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i + 1 < events.size(); ++i)
    if (events[i].second && !events[i + 1].second) times.push_back(events[i].first);
  return times;
}

/// By node, differences by strategy.
using Differences = std::map<std::int32_t, std::vector<double>>;

void add_differences(const Differences& more, Differences& sums) {
  for (const auto& [node, differences] : more) {
    std::vector<double>& sum = sums[node];
    sum.resize(differences.size(), 0);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += differences[k];
  }
}

/// A time, compared with the one before.
struct BusyTime {
  double left = 0, multiplier = 0;
  Differences differences;
};

/// Whether the memory can be more than at the time before, and whether it can be less.
std::pair<bool, bool> can_rise_and_fall(const BusyTime& time, double left_before) {
  bool rises = time.left < left_before;
  bool falls = time.left > left_before;
  for (const auto& [node, differences] : time.differences) {
    rises = rises || std::ranges::any_of(differences, [](double each) { return each > 0; });
    falls = falls || std::ranges::any_of(differences, [](double each) { return each < 0; });
    if (rises && falls) break;
  }
  return {rises, falls};
}

/// Adds a time, unless the last one is always worse; removes the last one if the new one is.
/// Returns what the next time has to be compared with in addition.
Differences add_busy_time(BusyTime time, std::vector<BusyTime>& times) {
  while (!times.empty()) {
    BusyTime& last = times.back();
    const auto [rises, falls] = can_rise_and_fall(time, last.left);
    if (!rises) {
      last.multiplier += time.multiplier;
      return std::move(time.differences);
    }
    if (falls) break;
    time.multiplier += last.multiplier;
    add_differences(last.differences, time.differences);
    times.pop_back();
  }
  times.push_back(std::move(time));
  return {};
}

std::vector<double> most_at_all_times(const MemoryProfile& profile) {
  std::vector<double> most(profile.time_count() + 1, 0);
  for (const MemoryChanges& changes : profile.nodes)
    for_each_piece(changes, profile.time_count(),
                   [&](std::size_t first, std::size_t last, std::span<const double> usages) {
                     const double highest = std::ranges::max(usages);
                     most[first] += highest;
                     most[last] -= highest;
                   });
  std::partial_sum(most.begin(), most.end(), most.begin());
  return most;
}

}  // namespace

void normalize(MemoryChanges& changes) {
  const std::size_t count = changes.times.size();
  if (count == 0) return;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return changes.times[i]; });
  MemoryChanges sums;
  const std::size_t strategies = changes.differences.size() / count;
  std::vector<double> sum(strategies);
  for (std::size_t i = 0; i < count;) {
    const std::int32_t time = changes.times[order[i]];
    std::ranges::fill(sum, 0);
    for (; i < count && changes.times[order[i]] == time; ++i) {
      const std::span<const double> differences = changes.at(order[i]);
      for (std::size_t k = 0; k < strategies; ++k) sum[k] += differences[k];
    }
    if (std::ranges::all_of(sum, [](double value) { return value == 0; })) continue;
    sums.times.push_back(time);
    sums.differences.insert(sums.differences.end(), sum.begin(), sum.end());
  }
  changes = std::move(sums);
}

MemoryProfile memory_profile(const ShardingProblem& problem) {
  MemoryProfile profile;
  profile.nodes.resize(problem.nodes.size());
  if (!problem.usage_limit) return profile;
  const std::vector<std::int64_t> times = busiest_times(problem);
  const auto place = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(times, time) - times.begin());
  };
  profile.left.assign(times.size(), static_cast<double>(*problem.usage_limit));
  profile.multipliers.assign(times.size(), 0);
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const ShardingNode& node = problem.nodes[v];
    if (node.begin >= node.end) continue;
    MemoryChanges& changes = profile.nodes[v];
    for (const auto& [time, sign] : {std::pair(place(node.begin), 1.0), {place(node.end), -1.0}}) {
      if (to_index(time) == times.size()) continue;
      changes.times.push_back(time);
      for (const std::int64_t usage : node.usages)
        changes.differences.push_back(sign * static_cast<double>(usage));
    }
    normalize(changes);
  }
  return profile;
}

MemoryProfile binding_times(const MemoryProfile& profile) {
  const std::vector<double> most = most_at_all_times(profile);
  std::vector<std::vector<std::pair<std::int32_t, std::size_t>>> changes_at(profile.time_count());
  for (std::size_t v = 0; v < profile.nodes.size(); ++v)
    for (std::size_t i = 0; i < profile.nodes[v].times.size(); ++i)
      changes_at[to_index(profile.nodes[v].times[i])].emplace_back(v, i);
  std::vector<BusyTime> times;
  Differences waiting;
  for (std::size_t t = 0; t < changes_at.size(); ++t) {
    for (const auto& [node, change] : changes_at[t]) {
      const std::span<const double> differences = profile.nodes[to_index(node)].at(change);
      add_differences({{node, {differences.begin(), differences.end()}}}, waiting);
    }
    if (most[t] <= profile.left[t]) continue;
    waiting =
        add_busy_time({profile.left[t], profile.multipliers[t], std::exchange(waiting, {})}, times);
  }
  MemoryProfile binding;
  binding.nodes.resize(profile.nodes.size());
  for (std::size_t t = 0; t < times.size(); ++t) {
    binding.left.push_back(times[t].left);
    binding.multipliers.push_back(times[t].multiplier);
    for (const auto& [node, differences] : times[t].differences) {
      MemoryChanges& changes = binding.nodes[to_index(node)];
      changes.times.push_back(static_cast<std::int32_t>(t));
      changes.differences.insert(changes.differences.end(), differences.begin(), differences.end());
    }
  }
  for (MemoryChanges& changes : binding.nodes) normalize(changes);
  return binding;
}

std::vector<double> usages_of(const MemoryProfile& profile, const Strategies& chosen) {
  std::vector<double> usages(profile.time_count(), 0);
  for (std::size_t v = 0; v < chosen.size(); ++v) {
    const MemoryChanges& changes = profile.nodes[v];
    for (std::size_t i = 0; i < changes.times.size(); ++i)
      usages[to_index(changes.times[i])] += changes.at(i)[to_index(chosen[v])];
  }
  std::partial_sum(usages.begin(), usages.end(), usages.begin());
  return usages;
}

bool fits(const MemoryProfile& profile, std::span<const double> usages) {
  for (std::size_t t = 0; t < usages.size(); ++t)
    if (usages[t] > profile.left[t]) return false;
  return true;
}

double price_of_limit(const MemoryProfile& profile) {
  return std::inner_product(profile.left.begin(), profile.left.end(), profile.multipliers.begin(),
                            0.0);
}

void ascend(std::span<const double> usages, double rise, MemoryProfile& profile) {
  double squares = 0;
  for (std::size_t t = 0; t < usages.size(); ++t) {
    const double over = usages[t] - profile.left[t];
    if (over > 0 || profile.multipliers[t] > 0) squares += over * over;
  }
  if (squares == 0) return;
  for (std::size_t t = 0; t < usages.size(); ++t)
    profile.multipliers[t] =
        std::max(0.0, profile.multipliers[t] + rise / squares * (usages[t] - profile.left[t]));
}

}  // namespace meshwright
