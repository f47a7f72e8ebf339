#include "simulator/network/max_min_sharing.hpp"

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

class ProgressiveFilling {
 public:
  explicit ProgressiveFilling(const SharingProblem& problem)
      : problem_(problem),
        left_(problem.capacities),
        growing_(problem.capacities.size(), 0),
        weight_(problem.capacities.size(), 0.0),
        rates_(problem.rate_limits.size()) {
    for (std::size_t f = 0; f < rates_.size(); ++f) {
      open_.push_back(f);
      for_each_use(f, [&](std::size_t link, double share_of_rate) {
        ++growing_[link];
        weight_[link] += share_of_rate;
      });
    }
  }

  /// Each round ends at the lowest level at which a link is full or a flow has its limit.
  std::vector<BytesPerSecond> run() {
    while (!open_.empty()) {
      const BytesPerSecond link_level = lowest_share();
      const BytesPerSecond limit = lowest_limit();
      if (limit <= link_level * (1 + kRateTolerance)) {
        stop_flows([&](std::size_t f) { return problem_.rate_limits[f] == limit; }, limit);
      } else {
        mark_full_links(link_level);
        stop_flows([&](std::size_t f) { return crosses_full_link(f); }, link_level);
      }
    }
    return std::move(rates_);
  }

 private:
  std::span<const std::int32_t> route(std::size_t flow) const {
    const auto begin = static_cast<std::size_t>(problem_.route_begin[flow]);
    const auto end = static_cast<std::size_t>(problem_.route_begin[flow + 1]);
    return std::span(problem_.routes).subspan(begin, end - begin);
  }
  /// Calls visit(link, fraction of the flow's rate that it uses there).
  template <class Visit>
  void for_each_use(std::size_t flow, Visit visit) const {
    const auto begin = static_cast<std::size_t>(problem_.route_begin[flow]);
    const auto end = static_cast<std::size_t>(problem_.route_begin[flow + 1]);
    for (std::size_t i = begin; i < end; ++i)
      visit(static_cast<std::size_t>(problem_.routes[i]),
            problem_.shares.empty() ? 1.0 : problem_.shares[i]);
  }
  /// The rate to which all flows on a link can grow until it is full.
  BytesPerSecond share(std::size_t link) const { return left_[link] / weight_[link]; }
  BytesPerSecond lowest_share() const {
    BytesPerSecond lowest(std::numeric_limits<double>::infinity());
    for (std::size_t l = 0; l < left_.size(); ++l)
      if (growing_[l] > 0) lowest = std::min(lowest, share(l));
    return lowest;
  }
  BytesPerSecond lowest_limit() const {
    BytesPerSecond lowest(std::numeric_limits<double>::infinity());
    for (const std::size_t f : open_) lowest = std::min(lowest, problem_.rate_limits[f]);
    return lowest;
  }
  void mark_full_links(BytesPerSecond level) {
    full_.assign(left_.size(), false);
    for (std::size_t l = 0; l < left_.size(); ++l) full_[l] = growing_[l] > 0 && share(l) <= level;
  }
  bool crosses_full_link(std::size_t flow) const {
    const auto links = route(flow);
    return std::any_of(links.begin(), links.end(),
                       [&](std::int32_t l) { return full_[static_cast<std::size_t>(l)]; });
  }
  /// Fixes the rate of the chosen flows and takes it off their links.
  template <class Chosen>
  void stop_flows(Chosen chosen, BytesPerSecond rate) {
    const auto stopped = std::stable_partition(open_.begin(), open_.end(),
                                               [&](std::size_t f) { return !chosen(f); });
    MW_CHECK(stopped != open_.end());
    for (auto f = stopped; f != open_.end(); ++f) {
      rates_[*f] = rate;
      for_each_use(*f, [&](std::size_t l, double share_of_rate) {
        left_[l] = std::max(BytesPerSecond(), left_[l] - rate * share_of_rate);
        weight_[l] -= share_of_rate;
        if (--growing_[l] == 0) weight_[l] = 0;  // drops rounding errors
      });
    }
    open_.erase(stopped, open_.end());
  }

  const SharingProblem& problem_;
  std::vector<BytesPerSecond> left_;   ///< by link: capacity not used by stopped flows
  std::vector<std::int32_t> growing_;  ///< by link: number of uses by flows that still grow
  std::vector<double> weight_;         ///< by link: sum of the shares of these uses
  std::vector<std::size_t> open_;      ///< flows that still grow, ascending
  std::vector<bool> full_;
  std::vector<BytesPerSecond> rates_;
};

}  // namespace

std::vector<BytesPerSecond> max_min_rates(const SharingProblem& problem) {
  MW_CHECK(problem.route_begin.size() == problem.rate_limits.size() + 1);
  for (const BytesPerSecond capacity : problem.capacities) MW_CHECK(capacity > BytesPerSecond());
  for (const BytesPerSecond limit : problem.rate_limits) MW_CHECK(limit > BytesPerSecond());
  MW_CHECK(problem.shares.empty() || problem.shares.size() == problem.routes.size());
  for (const double share : problem.shares) MW_CHECK(share > 0);
  return ProgressiveFilling(problem).run();
}

}  // namespace meshwright
