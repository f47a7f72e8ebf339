#include "core/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace meshwright {
namespace {

bool is_index(std::int32_t value, std::size_t size) {
  return value >= 0 && static_cast<std::size_t>(value) < size;
}

using Problems = std::vector<std::string>;

void check_tracks(const Timeline& timeline, Problems& problems) {
  std::set<std::pair<std::int32_t, Stream>> seen;
  for (std::size_t i = 0; i < timeline.tracks.size(); ++i) {
    const TimelineTrack& track = timeline.tracks[i];
    if (track.rank.value < 0 || static_cast<int>(track.stream) >= kStreamCount)
      problems.push_back(fmt::format("track {} has an invalid rank {} or stream {}", i,
                                     track.rank.value, static_cast<int>(track.stream)));
    else if (!seen.emplace(track.rank.value, track.stream).second)
      problems.push_back(fmt::format("duplicate track {}: rank {}, stream {}", i, track.rank.value,
                                     name_of(track.stream)));
  }
}

void check_span(const Timeline& timeline, std::size_t i, Problems& problems) {
  const TimelineSpan& span = timeline.spans[i];
  if (!is_index(span.track, timeline.tracks.size()))
    problems.push_back(fmt::format("span {}: track {} is out of range ({} tracks)", i, span.track,
                                   timeline.tracks.size()));
  if (!is_index(span.name, timeline.names.size()))
    problems.push_back(fmt::format("span {}: name {} is out of range ({} names)", i, span.name,
                                   timeline.names.size()));
  if (span.microbatch < -1 || span.stage < -1 || static_cast<int>(span.kind) >= kTaskKindCount)
    problems.push_back(fmt::format("span {} has an invalid micro-batch {}, stage {} or kind {}", i,
                                   span.microbatch, span.stage, static_cast<int>(span.kind)));
  if (span.start < Ticks(0) || span.end < span.start)
    problems.push_back(fmt::format("span {} has an invalid range from {} to {} ps", i,
                                   span.start.value, span.end.value));
  if (i == 0) return;
  const TimelineSpan& previous = timeline.spans[i - 1];
  if (span.track < previous.track)
    problems.push_back(
        fmt::format("span {} is on track {} after one on track {}", i, span.track, previous.track));
  else if (span.track == previous.track && span.start < previous.end)
    problems.push_back(
        fmt::format("span {} starts at {} ps, before span {} on its track ends at {}"
                    " ps",
                    i, span.start.value, i - 1, previous.end.value));
}

void check_memory(const Timeline& timeline, Problems& problems) {
  for (std::size_t i = 0; i < timeline.memory.size() && problems.size() < kProblemsWorthShowing;
       ++i) {
    const MemorySample& sample = timeline.memory[i];
    if (sample.rank < 0 || sample.time < Ticks(0))
      problems.push_back(fmt::format("memory sample {} has an invalid rank {} or time {} ps", i,
                                     sample.rank, sample.time.value));
    if (i == 0) continue;
    const MemorySample& previous = timeline.memory[i - 1];
    if (std::pair(sample.rank, sample.time) < std::pair(previous.rank, previous.time))
      problems.push_back(fmt::format("memory sample {} is not in order", i));
  }
}

}  // namespace

std::vector<std::string> check_timeline(const Timeline& timeline) {
  Problems problems;
  check_tracks(timeline, problems);
  for (std::size_t i = 0; i < timeline.spans.size() && problems.size() < kProblemsWorthShowing; ++i)
    check_span(timeline, i, problems);
  for (std::size_t i = 0; i < timeline.flows.size() && problems.size() < kProblemsWorthShowing; ++i)
    if (const TimelineFlow& flow = timeline.flows[i];
        !is_index(flow.from, timeline.spans.size()) || !is_index(flow.to, timeline.spans.size()))
      problems.push_back(fmt::format("flow {}: span {} or {} is out of range ({} spans)", i,
                                     flow.from, flow.to, timeline.spans.size()));
  check_memory(timeline, problems);
  if (problems.size() > kProblemsWorthShowing) problems.resize(kProblemsWorthShowing);
  return problems;
}

Ticks makespan(const Timeline& timeline) {
  if (timeline.spans.empty()) return Ticks(0);
  Ticks first = timeline.spans.front().start;
  Ticks last = timeline.spans.front().end;
  for (const TimelineSpan& span : timeline.spans) {
    first = std::min(first, span.start);
    last = std::max(last, span.end);
  }
  return last - first;
}

}  // namespace meshwright
