#include "gui/timeline/counters.hpp"

#include <algorithm>
#include <map>

namespace meshwright::gui {
namespace {

/// A micro-batch is in flight until its W if the row has weight-gradient passes, else until its B.
bool row_has_weight_passes(const TimelineTracks& tracks, std::size_t row) {
  const auto& channels = tracks.coverage.rows[row].channels;
  return std::find(channels.begin(), channels.end(), SliceKind::kBackwardWeight) != channels.end();
}

struct Stay {
  std::int64_t begin = 0, end = -1;
};

}  // namespace

InFlightCurve in_flight_curve(const TimelineTracks& tracks, std::size_t row) {
  const bool weights = row_has_weight_passes(tracks, row);
  // Micro-batch numbers repeat in the next step: a forward after the end starts a new stay.
  std::map<std::pair<std::int32_t, std::uint16_t>, Stay> open;
  std::vector<std::pair<std::int64_t, std::int32_t>> changes;
  const auto close = [&](const Stay& stay) {
    if (stay.end >= 0) changes.insert(changes.end(), {{stay.begin, 1}, {stay.end, -1}});
  };
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
    if (!is_pass(tracks.kind[s]) || tracks.microbatch[s] == kNoMicrobatch) continue;
    const auto key = std::pair(tracks.label_of(s).stage, tracks.microbatch[s]);
    if (tracks.kind[s] == SliceKind::kForward) {
      if (const auto at = open.find(key); at != open.end()) close(at->second);
      open[key] = {.begin = tracks.start_ns[s], .end = -1};
    } else if (const auto at = open.find(key); at != open.end()) {
      if (tracks.kind[s] != SliceKind::kBackwardInput || !weights)
        at->second.end = tracks.end_of(s).value;
    }
  }
  for (const auto& [key, stay] : open) close(stay);
  std::sort(changes.begin(), changes.end());
  InFlightCurve curve;
  std::int32_t value = 0;
  for (const auto& [time, change] : changes) {
    value += change;
    if (!curve.time_ns.empty() && curve.time_ns.back() == time) {
      curve.value.back() = value;
    } else {
      curve.time_ns.push_back(time);
      curve.value.push_back(value);
    }
  }
  for (const std::int32_t v : curve.value) curve.peak = std::max(curve.peak, v);
  return curve;
}

InFlightCurves::InFlightCurves(std::shared_ptr<const TimelineTracks> tracks)
    : tracks_(std::move(tracks)),
      once_(std::make_unique<std::once_flag[]>(tracks_->rows.size())),
      curves_(tracks_->rows.size()) {}

const InFlightCurve& InFlightCurves::of_row(std::size_t row) {
  std::call_once(once_[row], [&] { curves_[row] = in_flight_curve(*tracks_, row); });
  return curves_[row];
}

std::vector<std::int32_t> peaks_of_pixels(const InFlightCurve& curve, const TimeWindow& window) {
  std::vector<std::int32_t> peaks(static_cast<std::size_t>(window.width), 0);
  auto next = static_cast<std::size_t>(
      std::upper_bound(curve.time_ns.begin(), curve.time_ns.end(), window.from.value) -
      curve.time_ns.begin());
  std::int32_t held = next > 0 ? curve.value[next - 1] : 0;
  for (int x = 0; x < window.width; ++x) {
    const std::int64_t until = window.time_at(x + 1.0).value;
    std::int32_t peak = held;
    for (; next < curve.time_ns.size() && curve.time_ns[next] < until; ++next) {
      held = curve.value[next];
      peak = std::max(peak, held);
    }
    peaks[static_cast<std::size_t>(x)] = peak;
  }
  return peaks;
}

std::vector<const MemoryPoint*> memory_of_pixels(const MemoryCurveOfRank& curve,
                                                 const TimeWindow& window) {
  std::vector<const MemoryPoint*> points(static_cast<std::size_t>(window.width), nullptr);
  auto next = std::partition_point(curve.points.begin(), curve.points.end(),
                                   [&](const MemoryPoint& p) { return p.time <= window.from; });
  const MemoryPoint* held = next == curve.points.begin() ? nullptr : &*(next - 1);
  for (int x = 0; x < window.width; ++x) {
    const Nanoseconds until = window.time_at(x + 1.0);
    const MemoryPoint* peak = held;
    for (; next != curve.points.end() && next->time < until; ++next) {
      held = &*next;
      if (peak == nullptr || total(peak->amounts) < total(held->amounts)) peak = held;
    }
    points[static_cast<std::size_t>(x)] = peak;
  }
  return points;
}

Bytes peak_of(const MemoryCurveOfRank& curve) {
  Bytes peak;
  for (const MemoryPoint& point : curve.points) peak = std::max(peak, total(point.amounts));
  return peak;
}

}  // namespace meshwright::gui
