#include "simulator/network/max_min_sharing.hpp"

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Calls visit(link, fraction of the flow's rate that it uses there).
template <class Visit>
void for_each_use(const SharingProblem& problem, std::size_t flow, Visit visit) {
  const auto end = static_cast<std::size_t>(problem.route_begin[flow + 1]);
  for (auto i = static_cast<std::size_t>(problem.route_begin[flow]); i < end; ++i)
    visit(static_cast<std::size_t>(problem.routes[i]),
          problem.shares.empty() ? 1.0 : problem.shares[i]);
}

void check(const SharingProblem& problem) {
  MW_CHECK(problem.route_begin.size() == problem.rate_limits.size() + 1);
  for (const BytesPerSecond capacity : problem.capacities) MW_CHECK(capacity > BytesPerSecond());
  for (const BytesPerSecond limit : problem.rate_limits) MW_CHECK(limit > BytesPerSecond());
  MW_CHECK(problem.shares.empty() || problem.shares.size() == problem.routes.size());
  for (const double share : problem.shares) MW_CHECK(share > 0);
}

}  // namespace

void MaxMinSharing::begin(const SharingProblem& problem) {
  links_.clear();
  for (const BytesPerSecond capacity : problem.capacities) links_.push_back({.left = capacity});
  rates_.assign(problem.rate_limits.size(), BytesPerSecond());
  open_.clear();
  for (std::size_t f = 0; f < rates_.size(); ++f) {
    open_.push_back(f);
    for_each_use(problem, f, [&](std::size_t link, double share_of_rate) {
      ++links_[link].growing;
      links_[link].weight += share_of_rate;
    });
  }
}

/// Each round ends at the lowest level at which a link is full or a flow has its limit.
const std::vector<BytesPerSecond>& MaxMinSharing::rates(const SharingProblem& problem) {
  check(problem);
  begin(problem);
  while (!open_.empty()) {
    const BytesPerSecond link_level = lowest_share();
    const BytesPerSecond limit = lowest_limit(problem);
    if (limit <= link_level * (1 + kRateTolerance)) {
      stop_flows(
          problem, [&](std::size_t f) { return problem.rate_limits[f] == limit; }, limit);
      continue;
    }
    for (LinkState& link : links_) link.full = link.growing > 0 && link.share() <= link_level;
    const auto crosses_full_link = [&](std::size_t f) {
      bool crosses = false;
      for_each_use(problem, f, [&](std::size_t link, double) { crosses |= links_[link].full; });
      return crosses;
    };
    stop_flows(problem, crosses_full_link, link_level);
  }
  return rates_;
}

BytesPerSecond MaxMinSharing::lowest_share() const {
  BytesPerSecond lowest(std::numeric_limits<double>::infinity());
  for (const LinkState& link : links_)
    if (link.growing > 0) lowest = std::min(lowest, link.share());
  return lowest;
}

BytesPerSecond MaxMinSharing::lowest_limit(const SharingProblem& problem) const {
  BytesPerSecond lowest(std::numeric_limits<double>::infinity());
  for (const std::size_t f : open_) lowest = std::min(lowest, problem.rate_limits[f]);
  return lowest;
}

/// Fixes the rate of the chosen flows and takes it off their links.
template <class Chosen>
void MaxMinSharing::stop_flows(const SharingProblem& problem, Chosen chosen, BytesPerSecond rate) {
  std::size_t kept = 0;
  for (const std::size_t f : open_) {
    if (!chosen(f)) {
      open_[kept++] = f;
      continue;
    }
    rates_[f] = rate;
    for_each_use(problem, f, [&](std::size_t l, double share_of_rate) {
      LinkState& link = links_[l];
      link.left = std::max(BytesPerSecond(), link.left - rate * share_of_rate);
      link.weight -= share_of_rate;
      if (--link.growing == 0) link.weight = 0;  // drops rounding errors
    });
  }
  MW_CHECK(kept < open_.size());
  open_.resize(kept);
}

std::vector<BytesPerSecond> max_min_rates(const SharingProblem& problem) {
  return MaxMinSharing().rates(problem);
}

}  // namespace meshwright
