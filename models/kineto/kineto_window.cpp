#include "models/kineto/kineto_window.hpp"

#include <algorithm>

namespace meshwright {
namespace {

KinetoWindow whole_trace(const KinetoTrace& trace) {
  KinetoWindow window{.start_ns = trace.gpu.front().start_ns, .starts_ns = {}, .durations_ns = {}};
  for (const KinetoGpuWork& work : trace.gpu) window.end_ns = std::max(window.end_ns, work.end_ns);
  if (!trace.calls.empty())
    for (const KinetoCall& call : trace.calls)
      window.start_ns = std::min(window.start_ns, call.start_ns);
  window.starts_ns = {window.start_ns};
  window.durations_ns = {window.end_ns - window.start_ns};
  return window;
}

}  // namespace

KinetoWindow window_of(const KinetoTrace& trace) {
  KinetoWindow window{.starts_ns = {}, .durations_ns = {}};
  if (!trace.steps.empty()) {
    window.start_ns = trace.steps.front().start_ns;
    window.end_ns = trace.steps.back().end_ns;
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
      const bool is_last = i + 1 == trace.steps.size();
      window.starts_ns.push_back(trace.steps[i].start_ns);
      window.durations_ns.push_back(
          (is_last ? trace.steps[i].end_ns : trace.steps[i + 1].start_ns) -
          trace.steps[i].start_ns);
    }
    return window;
  }
  if (trace.updates.size() < 2) return whole_trace(trace);
  // Between the ends of consecutive updates.
  window.start_ns = trace.updates.front().end_ns;
  window.end_ns = trace.updates.back().end_ns;
  for (std::size_t i = 1; i < trace.updates.size(); ++i) {
    window.starts_ns.push_back(trace.updates[i - 1].end_ns);
    window.durations_ns.push_back(trace.updates[i].end_ns - trace.updates[i - 1].end_ns);
  }
  return window;
}

std::int64_t overlap_with(const Intervals& intervals, std::int64_t start, std::int64_t end) {
  auto at = std::upper_bound(intervals.begin(), intervals.end(), start,
                             [](std::int64_t ns, const auto& i) { return ns < i.second; });
  std::int64_t sum = 0;
  for (; at != intervals.end() && at->first < end; ++at)
    sum += std::min(end, at->second) - std::max(start, at->first);
  return sum;
}

Intervals merged(const Intervals& sorted) {
  Intervals result;
  for (const auto& interval : sorted) {
    if (result.empty() || interval.first > result.back().second)
      result.push_back(interval);
    else
      result.back().second = std::max(result.back().second, interval.second);
  }
  return result;
}

}  // namespace meshwright
