/// Max-min fair rates of flows that share links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// Links and the flows over them. A flow that lists a link twice loads it twice. A flow may load
/// its links unequally, as a collective does: at rate r it uses shares[i] * r of the i-th link.
struct SharingProblem {
  std::vector<BytesPerSecond> capacities;   ///< by link, above zero
  std::vector<BytesPerSecond> rate_limits;  ///< by flow, above zero: rate when alone
  std::vector<std::int32_t> route_begin;    ///< by flow, and the end: offsets into `routes`
  std::vector<std::int32_t> routes;         ///< links of flow 0, of flow 1, …
  std::vector<double> shares = {};          ///< by entry of `routes`, above zero; empty: all 1
  friend bool operator==(const SharingProblem&, const SharingProblem&) = default;
};

/// Max-min fair rates by progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed.,
/// section 6.5.2): all flows grow at the same pace; a flow stops when one of its links is full or
/// it reaches its limit, and the others keep growing.
///
/// A flow that is not limited by a link gets its limit bit for bit. Therefore a link limits a flow
/// only if its share is below the flow's limit by more than kRateTolerance, the precision of limits
/// that are computed from whole picoseconds.
///
/// O(rounds * (links + flows) + routes), where every round stops at least one flow.
std::vector<BytesPerSecond> max_min_rates(const SharingProblem& problem);

/// Solves many problems, reusing its memory.
class MaxMinSharing {
 public:
  /// max_min_rates(problem); valid until the next call.
  const std::vector<BytesPerSecond>& rates(const SharingProblem& problem);

 private:
  struct LinkState {
    BytesPerSecond left;       ///< capacity not used by stopped flows
    std::int32_t growing = 0;  ///< number of uses by flows that still grow
    double weight = 0;         ///< sum of the shares of these uses
    bool full = false;
    /// The rate to which all flows on the link can grow until it is full.
    BytesPerSecond share() const { return left / weight; }
  };
  void begin(const SharingProblem& problem);
  BytesPerSecond lowest_share() const;
  BytesPerSecond lowest_limit(const SharingProblem& problem) const;
  template <class Chosen>
  void stop_flows(const SharingProblem& problem, Chosen chosen, BytesPerSecond rate);

  std::vector<LinkState> links_;
  std::vector<std::size_t> open_;  ///< flows that still grow, ascending
  std::vector<BytesPerSecond> rates_;
};

inline constexpr double kRateTolerance = 1e-12;  ///< relative

}  // namespace meshwright
