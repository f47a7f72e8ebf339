#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {
namespace {

Ticks to_ticks_of(Nanoseconds time) { return Ticks(time.value * kTicksPerNanosecond); }

void refuse(std::string what) {
  throw InputError(
      Diagnostic{"timeline", std::move(what), "export as .csv or as an image instead"});
}

}  // namespace

Timeline timeline_of_tracks(const TimelineTracks& tracks, const std::vector<std::size_t>& rows,
                            Nanoseconds from, Nanoseconds to) {
  Timeline timeline;
  timeline.origin = tracks.origin;
  timeline.clock =
      tracks.origin == TimelineOrigin::kMeasured ? TimelineClock::kWall : TimelineClock::kSimulated;
  timeline.provenance = tracks.provenance;
  std::vector<std::int64_t> span_of(tracks.slice_count(), -1);
  for (const std::size_t row : rows) {
    const TimelineRow& r = tracks.rows[row];
    if (r.rank < 0 || r.stream < 0)
      refuse(fmt::format("row '{}' is not a stream of a rank and cannot be stored as .pftrace",
                         r.label));
    const auto track = static_cast<std::int32_t>(timeline.tracks.size());
    timeline.tracks.push_back({RankId(r.rank), static_cast<Stream>(r.stream)});
    for (std::size_t s = tracks.first_ending_after(row, from);
         s < tracks.row_begin[row + 1] && tracks.start_of(s) < to; ++s) {
      if (static_cast<int>(tracks.kind[s]) >= kTaskKindCount)
        refuse(fmt::format("'{}' is not a task of a plan and cannot be stored as .pftrace",
                           full_name(tracks, s)));
      span_of[s] = static_cast<std::int64_t>(timeline.spans.size());
      timeline.spans.push_back({.start = to_ticks_of(tracks.start_of(s)),
                                .end = to_ticks_of(tracks.end_of(s)),
                                .track = track,
                                .name = static_cast<std::int32_t>(timeline.names.size()),
                                .microbatch = tracks.microbatch[s] == kNoMicrobatch
                                                  ? -1
                                                  : std::int32_t{tracks.microbatch[s]},
                                .stage = static_cast<std::int16_t>(tracks.label_of(s).stage),
                                .kind = static_cast<TaskKind>(tracks.kind[s])});
      timeline.names.push_back(full_name(tracks, s));
    }
  }
  for (const SliceArrow& arrow : tracks.arrows)
    if (span_of[arrow.from] >= 0 && span_of[arrow.to] >= 0)
      timeline.flows.push_back({.from = static_cast<std::int32_t>(span_of[arrow.from]),
                                .to = static_cast<std::int32_t>(span_of[arrow.to])});
  for (const MemoryCurveOfRank& curve : tracks.memory)
    for (const MemoryPoint& point : curve.points)
      if (point.time >= from && point.time < to)
        timeline.memory.push_back(
            {.time = to_ticks_of(point.time), .rank = curve.rank, .amounts = point.amounts});
  return timeline;
}

}  // namespace meshwright::gui
