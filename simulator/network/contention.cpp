#include "simulator/network/contention.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {

FlowsOnLinks::FlowsOnLinks(const std::vector<Link>& links)
    : on_link_(links.size()), link_number_(links.size(), -1) {
  for (const Link& link : links) capacities_.push_back(link.capacity);
}

std::size_t FlowsOnLinks::start(const FlowRequest& request, Ticks now) {
  MW_CHECK(!request.route.empty());
  MW_CHECK(request.occupancy > Ticks());
  MW_CHECK(request.shares.empty() || request.shares.size() == request.route.size());
  if (free_slots_.empty()) {
    free_slots_.push_back(flows_.size());
    flows_.emplace_back();
    flow_joined_.push_back(false);
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  flows_[slot] = {.task = request.task,
                  .route = request.route,
                  .shares = request.shares,
                  .limit = request.limit,
                  .left = static_cast<double>(request.occupancy.value),
                  .speed = 0,
                  .since = now};
  for (const LinkId link : request.route) {
    on_link_[link.index()].push_back(slot);
    touched_.push_back(link);
  }
  return slot;
}

void FlowsOnLinks::finish(std::size_t slot) {
  for (const LinkId link : flows_[slot].route) {
    std::erase(on_link_[link.index()], slot);
    touched_.push_back(link);
  }
  flows_[slot].route.clear();
  free_slots_.push_back(slot);
}

const std::vector<FlowEnd>& FlowsOnLinks::rebalance(Ticks now) {
  changed_.clear();
  if (touched_.empty()) return changed_;
  collect_joined();
  pose_problem();
  const std::vector<BytesPerSecond> rates = max_min_rates(problem_);
  for (std::size_t i = 0; i < joined_flows_.size(); ++i) {
    Flow& flow = flows_[joined_flows_[i]];
    set_speed(flow, rates[i] == flow.limit ? 1 : ratio(rates[i], flow.limit), now);
    flow_joined_[joined_flows_[i]] = false;
  }
  for (const LinkId link : joined_links_) link_number_[link.index()] = -1;
  touched_.clear();
  return changed_;
}

/// Collects all links and flows connected to a touched link through a chain of shared links.
void FlowsOnLinks::collect_joined() {
  joined_links_.clear();
  joined_flows_.clear();
  const auto join = [&](LinkId link) {
    if (link_number_[link.index()] >= 0) return;
    link_number_[link.index()] = static_cast<std::int32_t>(joined_links_.size());
    joined_links_.push_back(link);
  };
  for (const LinkId link : touched_) join(link);
  // NOLINTNEXTLINE(modernize-loop-convert): join() appends to it
  for (std::size_t next = 0; next < joined_links_.size(); ++next)
    for (const std::size_t slot : on_link_[joined_links_[next].index()]) {
      if (flow_joined_[slot]) continue;
      flow_joined_[slot] = true;
      joined_flows_.push_back(slot);
      for (const LinkId link : flows_[slot].route) join(link);
    }
}

void FlowsOnLinks::pose_problem() {
  problem_.capacities.clear();
  problem_.rate_limits.clear();
  problem_.routes.clear();
  problem_.shares.clear();
  problem_.route_begin.assign(1, 0);
  for (const LinkId link : joined_links_) problem_.capacities.push_back(capacities_[link.index()]);
  for (const std::size_t slot : joined_flows_) {
    const Flow& flow = flows_[slot];
    problem_.rate_limits.push_back(flow.limit);
    for (const LinkId link : flow.route) problem_.routes.push_back(link_number_[link.index()]);
    if (flow.shares.empty())
      problem_.shares.insert(problem_.shares.end(), flow.route.size(), 1.0);
    else
      problem_.shares.insert(problem_.shares.end(), flow.shares.begin(), flow.shares.end());
    problem_.route_begin.push_back(static_cast<std::int32_t>(problem_.routes.size()));
  }
}

/// Rounds ends up to whole Ticks after subtracting the tolerance of the rates: otherwise 10 Ticks
/// at a third of full speed could end at 31 instead of 30.
void FlowsOnLinks::set_speed(Flow& flow, double speed, Ticks now) {
  if (speed == flow.speed) return;
  const double done = static_cast<double>((now - flow.since).value) * flow.speed;
  flow.left = std::max(0.0, flow.left - done);
  flow.speed = speed;
  flow.since = now;
  const double duration = std::ceil(flow.left / speed * (1 - kRateTolerance));
  changed_.push_back({.task = flow.task, .end = now + Ticks(static_cast<std::int64_t>(duration))});
}

}  // namespace meshwright
