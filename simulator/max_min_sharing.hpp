/// Max-min fair rates of flows that meet on links.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace meshwright {

/// Links and the flows over them. A flow that names a link twice uses it twice. A flow may load its
/// links unequally, as a collective does: at rate r it takes shares[i] * r of the i-th link.
struct SharingProblem {
  std::vector<BytesPerSecond> capacities;   ///< by link, above zero
  std::vector<BytesPerSecond> rate_limits;  ///< by flow, above zero: what it takes when alone
  std::vector<std::int32_t> route_begin;    ///< by flow, and the end: offsets into `routes`
  std::vector<std::int32_t> routes;         ///< links of flow 0, of flow 1, …
  std::vector<double> shares = {};          ///< beside `routes`, above zero; empty: all are 1
  friend bool operator==(const SharingProblem&, const SharingProblem&) = default;
};

/// The rates at which no flow can be given more without taking from one that has no more than it:
/// progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed., section 6.5.2). All flows
/// grow alike; when a link is full, or a flow reaches its limit, it stops, and the others go on.
///
/// A flow that no link holds back gets its limit exactly, to the last bit. For that, a link counts
/// as holding back a flow only if its share is below the flow's limit by more than
/// kRateTolerance: limits are made from whole picoseconds and are known no better.
///
/// O(rounds * (links + flows) + routes), where every round stops at least one flow.
std::vector<BytesPerSecond> max_min_rates(const SharingProblem& problem);

inline constexpr double kRateTolerance = 1e-12;  ///< relative

}  // namespace meshwright
