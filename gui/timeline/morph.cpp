#include "gui/timeline/morph.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright::gui {
namespace {

constexpr std::uint32_t kAlone = std::numeric_limits<std::uint32_t>::max();

/// By predicted slice: the measured one, or kAlone.
std::vector<std::uint32_t> partners_of(const TimelineTracks& predicted,
                                       const TimelineComparison& pairs) {
  std::vector<std::uint32_t> partners(predicted.slice_count(), kAlone);
  for (const SlicePair& pair : pairs.slices) partners[pair.predicted] = pair.measured;
  return partners;
}

std::int64_t between(Nanoseconds from, Nanoseconds to, double share) {
  return from.value + std::llround(share * static_cast<double>((to - from).value));
}

}  // namespace

TimelineTracks morphed(const TimelineTracks& predicted, const TimelineTracks& measured,
                       const TimelineComparison& pairs, double share) {
  const std::vector<std::uint32_t> partners = partners_of(predicted, pairs);
  TimelineTracks tracks = predicted;
  tracks.long_durations.clear();
  tracks.end = Nanoseconds(0);
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    std::int64_t free_from = 0;  // start times are not negative
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
      std::int64_t start = predicted.start_of(s).value, end = predicted.end_of(s).value;
      if (const std::uint32_t partner = partners[s]; partner != kAlone) {
        start = between(predicted.start_of(s), measured.start_of(partner) + pairs.offset, share);
        end = between(predicted.end_of(s), measured.end_of(partner) + pairs.offset, share);
      }
      const std::int64_t duration = end - start;
      start = std::max(start, free_from);
      end = std::max(start, partners[s] == kAlone ? start + duration : end);
      tracks.start_ns[s] = start;
      set_duration(tracks, s, end - start);
      free_from = end;
    }
    tracks.end = std::max(tracks.end, Nanoseconds(free_from));
  }
  tracks.coverage = build_coverage(tracks);
  return tracks;
}

}  // namespace meshwright::gui
