#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "gui/timeline/trace_rows.hpp"

namespace meshwright::gui {
namespace {

/// Clocks further apart than this (36 years) are invalid.
constexpr std::int64_t kMostApart = std::int64_t{1} << 60;

/// Group, name, and the sequence number in the group (counted here if the trace has none).
using CollectiveKey = std::tuple<std::string, std::string, std::int64_t>;

/// The end time of every collective of a rank.
std::map<CollectiveKey, std::int64_t> collective_ends(const TraceEvents& events) {
  std::map<CollectiveKey, std::int64_t> ends;
  std::map<std::pair<std::string, std::string>, std::int64_t> seen;
  std::vector<const TraceSlice*> in_order;
  for (const TraceSlice& slice : events.slices)
    if (slice.detail >= 0 &&
        events.details[static_cast<std::size_t>(slice.detail)].collective >= 0 &&
        kind_of(events, slice) == SliceKind::kCollective)
      in_order.push_back(&slice);
  std::stable_sort(in_order.begin(), in_order.end(), [](const TraceSlice* a, const TraceSlice* b) {
    return a->start_ns < b->start_ns;
  });
  for (const TraceSlice* slice : in_order) {
    const TraceDetail& detail = events.details[static_cast<std::size_t>(slice->detail)];
    const auto name = [&](std::int32_t index) {
      return index < 0 ? std::string() : events.names[static_cast<std::size_t>(index)];
    };
    const std::string group = name(detail.group), collective = name(detail.collective);
    const std::int64_t count = detail.sequence >= 0 ? detail.sequence : seen[{group, collective}]++;
    ends.emplace(CollectiveKey{group, collective, count}, slice->start_ns + slice->duration_ns);
  }
  return ends;
}

std::int64_t median(std::vector<std::int64_t>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// end in a - end in b of all collectives in both.
std::vector<std::int64_t> differences(const std::map<CollectiveKey, std::int64_t>& a,
                                      const std::map<CollectiveKey, std::int64_t>& b) {
  std::vector<std::int64_t> result;
  for (const auto& [key, end] : a)
    if (const auto at = b.find(key); at != b.end())
      if (const std::int64_t apart = end - at->second; std::abs(apart) < kMostApart)
        result.push_back(apart);
  return result;
}

}  // namespace

ClockAlignment align_clocks(std::vector<RankTrace>& traces) {
  ClockAlignment result;
  std::vector<std::map<CollectiveKey, std::int64_t>> ends;
  ends.reserve(traces.size());
  for (const RankTrace& trace : traces) ends.push_back(collective_ends(trace.events));
  std::vector<std::size_t> reached;
  std::vector<bool> is_reached(traces.size());
  if (!traces.empty()) reached.push_back(0), is_reached[0] = true;
  std::vector<std::int64_t> distances;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::size_t from = reached[i];
    for (std::size_t to = 0; to < traces.size(); ++to) {
      if (to == from) continue;
      std::vector<std::int64_t> apart = differences(ends[from], ends[to]);
      if (apart.empty()) continue;
      if (!is_reached[to]) {
        const std::int64_t shift = traces[from].clock_shift_ns + median(apart);
        if (std::abs(shift) > kMostApart) continue;
        is_reached[to] = true;
        reached.push_back(to);
        traces[to].clock_shift_ns = shift;
      }
      if (from < to)  // each pair once
        for (const std::int64_t a : apart)
          distances.push_back(
              std::abs(a + traces[from].clock_shift_ns - traces[to].clock_shift_ns));
    }
  }
  result.shared = distances.size();
  if (!distances.empty()) result.residual = Nanoseconds(median(distances));
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (!is_reached[i]) result.alone.push_back(traces[i].rank);
  return result;
}

}  // namespace meshwright::gui
