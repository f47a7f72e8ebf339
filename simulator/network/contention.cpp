#include "simulator/network/contention.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {

FlowsOnLinks::FlowsOnLinks(std::span<const BytesPerSecond> capacities) : links_(capacities.size()) {
  for (std::size_t l = 0; l < capacities.size(); ++l) links_[l].capacity = capacities[l];
}

void FlowsOnLinks::touch(LinkId link) {
  LinkUse& use = links_[link.index()];
  if (use.touched) return;
  use.touched = true;
  touched_.push_back(link);
}

std::size_t FlowsOnLinks::start(const FlowRequest& request, Ticks now) {
  MW_CHECK(!request.route.empty());
  MW_CHECK(request.occupancy > Ticks());
  MW_CHECK(request.shares.empty() || request.shares.size() == request.route.size());
  if (free_slots_.empty()) {
    free_slots_.push_back(flows_.size());
    flows_.emplace_back();
  }
  const std::size_t slot = free_slots_.back();
  free_slots_.pop_back();
  Flow& flow = flows_[slot];
  flow.task = request.task;
  flow.limit = request.limit;
  flow.left = static_cast<double>(request.occupancy.value);
  flow.speed = 0;
  flow.since = now;
  flow.earliest_end = now + request.occupancy;
  bool meets_tight = false;
  for (std::size_t h = 0; h < request.route.size(); ++h) {
    const LinkId id = request.route[h];
    const double share = request.shares.empty() ? 1.0 : request.shares[h];
    LinkUse& link = links_[id.index()];
    flow.hops.push_back({id, static_cast<std::uint32_t>(link.uses.size()), share});
    link.uses.push_back({static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(h)});
    link.demand += flow.limit * share;
    if (!link.tight && !is_tight(link)) continue;
    meets_tight = true;
    touch(id);
  }
  if (meets_tight) {
    unsettled_.push_back(slot);
  } else {
    flow.speed = 1;
    settled_.push_back({.task = flow.task, .end = flow.earliest_end, .slot = slot});
  }
  return slot;
}

void FlowsOnLinks::finish(std::size_t slot) {
  Flow& flow = flows_[slot];
  for (const Hop& hop : flow.hops) {
    LinkUse& link = links_[hop.link.index()];
    const Use moved = link.uses.back();
    link.uses[hop.place] = moved;
    flows_[moved.slot].hops[moved.hop].place = hop.place;
    link.uses.pop_back();
    link.demand = link.uses.empty() ? BytesPerSecond()  // drops rounding errors
                                    : link.demand - flow.limit * hop.share;
    if (link.tight) touch(hop.link);
  }
  flow.hops.clear();
  free_slots_.push_back(slot);
}

/// Never false for a link that slows down a flow. The sum of several demands has rounding errors.
bool FlowsOnLinks::is_tight(const LinkUse& link) {
  constexpr double kRoundingErrors = 1e-9;
  return link.demand >
         (link.uses.size() <= 1 ? link.capacity : link.capacity * (1 - kRoundingErrors));
}

const std::vector<FlowEnd>& FlowsOnLinks::rebalance(Ticks now) {
  changed_.clear();
  changed_.swap(settled_);
  for (const LinkId id : touched_) {
    LinkUse& link = links_[id.index()];
    link.touched = false;
    const bool was_tight = link.tight;
    link.tight = is_tight(link);
    if (was_tight || link.tight)
      for (const Use& use : link.uses) unsettled_.push_back(use.slot);
  }
  touched_.clear();
  joined_flows_.clear();
  for (const std::size_t slot : unsettled_) {
    if (flows_[slot].joined || flows_[slot].hops.empty()) continue;
    const std::size_t first = joined_flows_.size();
    collect_joined(slot);
    settle(std::span(joined_flows_).subspan(first), now);
  }
  for (const std::size_t slot : joined_flows_) flows_[slot].joined = false;
  unsettled_.clear();
  return changed_;
}

/// Appends all flows connected to this one through a chain of tight links, and numbers these links.
void FlowsOnLinks::collect_joined(std::size_t slot) {
  const auto join = [&](std::size_t s) {
    if (flows_[s].joined) return;
    flows_[s].joined = true;
    joined_flows_.push_back(s);
  };
  joined_links_.clear();
  std::size_t next = joined_flows_.size();
  for (join(slot); next < joined_flows_.size(); ++next)
    for (const Hop& hop : flows_[joined_flows_[next]].hops) {
      LinkUse& link = links_[hop.link.index()];
      if (!link.tight || link.number >= 0) continue;
      link.number = static_cast<std::int32_t>(joined_links_.size());
      joined_links_.push_back(hop.link);
      for (const Use& use : link.uses) join(use.slot);
    }
}

/// Sets the speeds of connected flows.
void FlowsOnLinks::settle(std::span<const std::size_t> slots, Ticks now) {
  if (joined_links_.empty()) {
    for (const std::size_t slot : slots) set_speed(slot, 1, now);
    return;
  }
  pose_problem(slots);
  const std::vector<BytesPerSecond>& rates = sharing_.rates(problem_);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const BytesPerSecond limit = flows_[slots[i]].limit;
    set_speed(slots[i], rates[i] == limit ? 1 : ratio(rates[i], limit), now);
  }
  for (const LinkId link : joined_links_) links_[link.index()].number = -1;
}

void FlowsOnLinks::pose_problem(std::span<const std::size_t> slots) {
  problem_.capacities.clear();
  problem_.rate_limits.clear();
  problem_.routes.clear();
  problem_.shares.clear();
  problem_.route_begin.assign(1, 0);
  for (const LinkId link : joined_links_)
    problem_.capacities.push_back(links_[link.index()].capacity);
  for (const std::size_t slot : slots) {
    const Flow& flow = flows_[slot];
    problem_.rate_limits.push_back(flow.limit);
    for (const Hop& hop : flow.hops) {
      const std::int32_t number = links_[hop.link.index()].number;
      if (number < 0) continue;
      problem_.routes.push_back(number);
      problem_.shares.push_back(hop.share);
    }
    problem_.route_begin.push_back(static_cast<std::int32_t>(problem_.routes.size()));
  }
}

/// Rounds ends up to whole Ticks after subtracting the tolerance of the rates: otherwise 10 Ticks
/// at a third of full speed could end at 31 instead of 30. The tolerance of long messages is more
/// than a Tick, but none ends before the time it takes alone.
void FlowsOnLinks::set_speed(std::size_t slot, double speed, Ticks now) {
  Flow& flow = flows_[slot];
  if (speed == flow.speed) return;
  const double done = static_cast<double>((now - flow.since).value) * flow.speed;
  flow.left = std::max(0.0, flow.left - done);
  flow.speed = speed;
  flow.since = now;
  const double duration = std::ceil(flow.left / speed * (1 - kRateTolerance));
  const Ticks end = now + Ticks(static_cast<std::int64_t>(duration));
  changed_.push_back({.task = flow.task, .end = std::max(end, flow.earliest_end), .slot = slot});
}

}  // namespace meshwright
