#include "core/timeline/timeline_of.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/timeline/memory_curve.hpp"

namespace meshwright {
namespace {

constexpr std::int32_t kNoTrack = -1;

std::size_t stream_index(const Task& task) {
  return static_cast<std::size_t>(task.rank) * kStreamCount + static_cast<std::size_t>(task.stream);
}

/// Tracks of the streams that have tasks; `track_of` is the track of [rank, stream].
std::vector<TimelineTrack> used_tracks(const TaskGraph& graph,
                                       std::vector<std::int32_t>& track_of) {
  track_of.assign(graph.ranks.size() * kStreamCount, kNoTrack);
  for (const Task& task : graph.tasks) track_of[stream_index(task)] = 0;
  std::vector<TimelineTrack> tracks;
  for (std::size_t i = 0; i < track_of.size(); ++i) {
    if (track_of[i] == kNoTrack) continue;
    track_of[i] = static_cast<std::int32_t>(tracks.size());
    tracks.push_back({.rank = graph.ranks[i / kStreamCount].rank,
                      .stream = static_cast<Stream>(i % kStreamCount)});
  }
  return tracks;
}

/// Appends spans by track (the tasks of a stream are already in start order). Returns the index of
/// the span of every completed task.
std::vector<std::int32_t> place_spans(const TaskGraph& graph, const TaskTimes& times,
                                      const std::vector<bool>& is_done,
                                      const std::vector<std::int32_t>& track_of,
                                      Timeline& timeline) {
  std::vector<std::int32_t> next(timeline.tracks.size() + 1, 0);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i)
    if (is_done[i]) ++next[static_cast<std::size_t>(track_of[stream_index(graph.tasks[i])]) + 1];
  for (std::size_t t = 1; t < next.size(); ++t) next[t] += next[t - 1];

  std::vector<std::int32_t> place(graph.tasks.size());
  timeline.spans.resize(static_cast<std::size_t>(next.back()));
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (!is_done[i]) continue;
    const Task& task = graph.tasks[i];
    const std::int32_t track = track_of[stream_index(task)];
    place[i] = next[static_cast<std::size_t>(track)]++;
    timeline.spans[static_cast<std::size_t>(place[i])] = {.start = times.start[i],
                                                          .end = times.end[i],
                                                          .track = track,
                                                          .name = static_cast<std::int32_t>(i),
                                                          .microbatch = task.microbatch,
                                                          .stage = task.stage,
                                                          .kind = task.kind};
  }
  return place;
}

std::vector<MemorySample> memory_samples(const TaskGraph& graph, const TaskTimes& times,
                                         const std::vector<bool>& is_done) {
  const std::vector<std::vector<MemoryLevel>> curves = memory_curves(graph, times, is_done);
  std::size_t count = 0;
  for (const std::vector<MemoryLevel>& curve : curves) count += curve.size();
  std::vector<MemorySample> samples;
  samples.reserve(count);
  for (std::size_t r = 0; r < curves.size(); ++r)
    for (const MemoryLevel& level : curves[r])
      samples.push_back(
          {.time = level.time, .rank = graph.ranks[r].rank.value, .amounts = level.amounts});
  return samples;
}

}  // namespace

Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times) {
  return timeline_of(graph, times, std::vector<bool>(graph.tasks.size(), true));
}

Timeline timeline_of(const TaskGraph& graph, const TaskTimes& times,
                     const std::vector<bool>& is_done) {
  MW_CHECK(times.start.size() == graph.tasks.size());
  MW_CHECK(times.end.size() == graph.tasks.size());
  MW_CHECK(is_done.size() == graph.tasks.size());
  Timeline timeline;
  std::vector<std::int32_t> track_of;
  timeline.tracks = used_tracks(graph, track_of);
  const std::vector<std::int32_t> place = place_spans(graph, times, is_done, track_of, timeline);
  timeline.flows.reserve(static_cast<std::size_t>(
      std::count_if(graph.tasks.begin(), graph.tasks.end(),
                    [](const Task& task) { return task.kind == TaskKind::kReceive; })));
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const auto sent = static_cast<std::size_t>(task.partner);
    if (task.kind == TaskKind::kReceive && is_done[i] && is_done[sent])
      timeline.flows.push_back({.from = place[sent], .to = place[i]});
  }
  timeline.memory = memory_samples(graph, times, is_done);
  timeline.names = stable_names(graph);
  return timeline;
}

}  // namespace meshwright
