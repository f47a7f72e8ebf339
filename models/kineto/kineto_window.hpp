/// The steps of a Kineto trace, and intervals of time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/formats/kineto.hpp"

namespace meshwright {

/// The complete steps of a trace.
struct KinetoWindow {
  std::int64_t start_ns = 0, end_ns = 0;
  std::vector<std::int64_t> starts_ns, durations_ns;  ///< of the steps, in order
  int steps() const { return static_cast<int>(durations_ns.size()); }
  bool contains(std::int64_t ns) const { return ns >= start_ns && ns < end_ns; }
};
/// From ProfilerStep#N; without these, from the optimizer's ranges or the whole trace as one step.
KinetoWindow window_of(const KinetoTrace& trace);

/// Disjoint, increasing intervals of time.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;
/// Time of [start, end) inside the intervals. O(log n + overlapping intervals).
std::int64_t overlap_with(const Intervals& intervals, std::int64_t start, std::int64_t end);
/// Union of intervals sorted by start.
Intervals merged(const Intervals& sorted);

}  // namespace meshwright
