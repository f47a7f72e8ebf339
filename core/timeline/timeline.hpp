/// Spans per (rank, stream), memory counters, and their provenance, predicted or measured.
/// Self-contained: a Timeline read from a file needs no TaskGraph.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/base/memory_amounts.hpp"
#include "core/base/text_table.hpp"
#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

enum class TimelineOrigin : std::uint8_t { kPredicted, kMeasured };
enum class TimelineClock : std::uint8_t { kSimulated, kWall, kVirtual, kReplay };

struct TimelineTrack {
  RankId rank;
  Stream stream = Stream::kCompute;
  friend bool operator==(const TimelineTrack&, const TimelineTrack&) = default;
};

struct TimelineSpan {
  Ticks start, end;
  std::int32_t track = 0;  ///< index in Timeline::tracks
  std::int32_t name = 0;   ///< index in Timeline::names: the task's stable name
  std::int32_t microbatch = -1;
  std::int16_t stage = -1;
  TaskKind kind = TaskKind::kForward;
  friend bool operator==(const TimelineSpan&, const TimelineSpan&) = default;
};

/// A message or dependency, drawn as an arrow between two spans.
struct TimelineFlow {
  std::int32_t from = 0, to = 0;  ///< indices in Timeline::spans
  friend bool operator==(const TimelineFlow&, const TimelineFlow&) = default;
};

/// Memory of one rank right after `time`.
struct MemorySample {
  Ticks time;
  std::int32_t rank = 0;  ///< RankId value
  MemoryAmounts amounts;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

struct Timeline {
  TimelineOrigin origin = TimelineOrigin::kPredicted;
  TimelineClock clock = TimelineClock::kSimulated;
  std::vector<TimelineTrack> tracks;
  TextTable names;
  std::vector<TimelineSpan> spans;  ///< sorted by track, then start; no overlaps within a track
  std::vector<TimelineFlow> flows;
  std::vector<MemorySample> memory;               ///< sorted by rank, then time
  std::map<std::string, std::string> provenance;  ///< "plan", "cost model", "program", …
  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// Descriptions of violated invariants: overlapping spans, indices out of range, wrong order. Empty
/// if the timeline is valid.
std::vector<std::string> check_timeline(const Timeline& timeline);

/// Time from the first start to the last end; zero if there are no spans.
Ticks makespan(const Timeline& timeline);

}  // namespace meshwright
