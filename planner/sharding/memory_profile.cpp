#include "planner/sharding/memory_profile.hpp"

#include <algorithm>

namespace meshwright {

MemoryProfile::MemoryProfile(const ShardingProblem& problem) {
  if (problem.usage_limit) limit_ = *problem.usage_limit;
  std::vector<std::pair<std::int64_t, bool>> events;  // time, is a begin; ends come first
  for (const ShardingNode& node : problem.nodes) {
    begin_.push_back(usages_.size());
    for (const std::int64_t usage : node.usages) usages_.push_back(static_cast<double>(usage));
    if (node.begin >= node.end) continue;
    events.emplace_back(node.begin, true);
    events.emplace_back(node.end, false);
  }
  std::ranges::sort(events);
  // A time counts if nodes begin at it and the next event is an end.
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i + 1 < events.size(); ++i)
    if (events[i].second && !events[i + 1].second) times.push_back(events[i].first);
  times_ = times.size();
  const auto place = [&](std::int64_t time) {
    return static_cast<std::int32_t>(std::ranges::lower_bound(times, time) - times.begin());
  };
  for (const ShardingNode& node : problem.nodes)
    ranges_.push_back(node.begin < node.end ? Range{place(node.begin), place(node.end)} : Range{});
}

std::vector<double> MemoryProfile::usages_of(const Strategies& chosen) const {
  std::vector<double> change(times_ + 1, 0);
  for (std::size_t v = 0; v < ranges_.size(); ++v) {
    const double used = usage(v, static_cast<std::size_t>(chosen[v]));
    change[static_cast<std::size_t>(ranges_[v].first)] += used;
    change[static_cast<std::size_t>(ranges_[v].last)] -= used;
  }
  for (std::size_t t = 1; t < change.size(); ++t) change[t] += change[t - 1];
  change.pop_back();
  return change;
}

bool MemoryProfile::fits(const std::vector<double>& usages) const {
  return !has_limit() || std::ranges::all_of(usages, [&](double used) { return used <= limit(); });
}

}  // namespace meshwright
