/// Converts a simulated step to tracks, at every move of a slider: directly from tasks to columns,
/// without names or an intermediate Timeline.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <utility>

#include "core/base/check.hpp"
#include "core/timeline/memory_curve.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {
namespace {

constexpr std::uint32_t kUnset = std::numeric_limits<std::uint32_t>::max();

std::size_t stream_index(const Task& task) {
  return static_cast<std::size_t>(task.rank) * kStreamCount + static_cast<std::size_t>(task.stream);
}

/// Adds a row for every stream with tasks, by rank and stream. Returns the index of the first slice
/// of every [rank, stream].
std::vector<std::uint32_t> add_rows(const TaskGraph& graph, TimelineTracks& tracks) {
  std::vector<std::uint32_t> count(graph.ranks.size() * kStreamCount, 0);
  for (const Task& task : graph.tasks) ++count[stream_index(task)];
  std::uint32_t begin = 0;
  for (std::size_t i = 0; i < count.size(); ++i) {
    const std::uint32_t slices = std::exchange(count[i], begin);
    if (slices == 0) continue;
    const RankInfo& rank = graph.ranks[i / kStreamCount];
    const auto stream = static_cast<Stream>(i % kStreamCount);
    tracks.rows.push_back({.label = std::string(meshwright::name_of(stream)),
                           .rank = rank.rank.value,
                           .stream = static_cast<std::int32_t>(stream),
                           .pipeline_rank = rank.coordinate.pipeline,
                           .replica = rank.coordinate.data,
                           .is_compute = stream == Stream::kCompute});
    tracks.row_begin.push_back(begin);
    begin += slices;
  }
  tracks.row_begin.push_back(begin);
  return count;
}

/// Labels of tasks, created on first use: the name of the kind, and the stage.
class Labels {
 public:
  Labels(const TaskGraph& graph, TimelineTracks& tracks) : graph_(graph), tracks_(tracks) {
    std::int16_t last_stage = -1;
    for (const Task& task : graph.tasks) last_stage = std::max(last_stage, task.stage);
    known_.assign((static_cast<std::size_t>(last_stage) + 2) * kNames, kUnset);
  }

  std::uint32_t of(const Task& task) {
    const std::size_t name =
        task.kind == TaskKind::kCollective
            ? kTaskKindCount +
                  static_cast<std::size_t>(graph_.works[task.work.index()].collective.kind)
            : static_cast<std::size_t>(task.kind);
    std::uint32_t& known = known_[static_cast<std::size_t>(task.stage + 1) * kNames + name];
    if (known == kUnset) {
      known = static_cast<std::uint32_t>(tracks_.labels.size());
      tracks_.labels.push_back({.name = name_of_task(task), .stage = task.stage});
    }
    return known;
  }

 private:
  static constexpr std::size_t kNames = kTaskKindCount + kCollectiveKindCount;

  std::string name_of_task(const Task& task) const {
    std::string name(meshwright::name_of(task.kind));
    if (task.kind == TaskKind::kCollective)
      name +=
          fmt::format(".{}", meshwright::name_of(graph_.works[task.work.index()].collective.kind));
    return name;
  }

  const TaskGraph& graph_;
  TimelineTracks& tracks_;
  std::vector<std::uint32_t> known_;  ///< [stage + 1, name]
};

void resize_columns(TimelineTracks& tracks, std::size_t slices) {
  tracks.start_ns.resize(slices);
  tracks.duration_ns.resize(slices);
  tracks.kind.resize(slices);
  tracks.microbatch.resize(slices);
  tracks.label.resize(slices);
}

void set_label(TimelineTracks& tracks, std::size_t slice, std::uint32_t label) {
  const bool is_far = label >= kFarLabel;
  tracks.label[slice] = is_far ? kFarLabel : static_cast<std::uint16_t>(label);
  if (is_far) tracks.far_labels.emplace_back(slice, label);
}

/// Slices of a stream are in task order, which is also the order of their starts. Returns the slice
/// of every task; `next` is the index of the next slice of every [rank, stream].
std::vector<std::uint32_t> fill_columns(const TaskGraph& graph, const TaskTimes& times,
                                        std::vector<std::uint32_t> next, TimelineTracks& tracks) {
  Labels labels(graph, tracks);
  std::vector<std::uint32_t> slice_of(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    const std::uint32_t slice = next[stream_index(task)]++;
    slice_of[i] = slice;
    const std::int64_t start = floor_nanoseconds(times.start[i]).value;
    const std::int64_t end = floor_nanoseconds(times.end[i]).value;
    tracks.start_ns[slice] = start;
    set_duration(tracks, slice, end - start);
    set_label(tracks, slice, labels.of(task));
    tracks.kind[slice] = slice_kind_of(task.kind);
    tracks.microbatch[slice] = task.microbatch >= 0 && task.microbatch < kNoMicrobatch
                                   ? static_cast<std::uint16_t>(task.microbatch)
                                   : kNoMicrobatch;
    tracks.end = std::max(tracks.end, Nanoseconds(end));
  }
  std::sort(tracks.long_durations.begin(), tracks.long_durations.end());
  std::sort(tracks.far_labels.begin(), tracks.far_labels.end());
  return slice_of;
}

/// Adds arrows from sends to receives, ordered by the
/// slice of the send. Optimized for one receive per send.
void add_arrows(const TaskGraph& graph, const std::vector<std::uint32_t>& slice_of,
                TimelineTracks& tracks) {
  std::vector<std::uint32_t> receive_of(graph.tasks.size(), kUnset);
  std::vector<SliceArrow> others;
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    if (graph.tasks[i].kind != TaskKind::kReceive) continue;
    const std::uint32_t from = slice_of[static_cast<std::size_t>(graph.tasks[i].partner)];
    if (receive_of[from] == kUnset)
      receive_of[from] = slice_of[i];
    else
      others.push_back({from, slice_of[i]});
  }
  for (std::uint32_t from = 0; from < receive_of.size(); ++from)
    if (receive_of[from] != kUnset) tracks.arrows.push_back({from, receive_of[from]});
  if (others.empty()) return;
  tracks.arrows.insert(tracks.arrows.end(), others.begin(), others.end());
  std::sort(tracks.arrows.begin(), tracks.arrows.end());
}

std::vector<MemoryCurveOfRank> memory_of(const TaskGraph& graph, const TaskTimes& times) {
  std::vector<std::vector<MemoryLevel>> curves = memory_curves(graph, times);
  std::vector<MemoryCurveOfRank> memory(curves.size());
  for (std::size_t r = 0; r < curves.size(); ++r) {
    memory[r].rank = graph.ranks[r].rank.value;
    memory[r].points.reserve(curves[r].size());
    for (const MemoryLevel& level : curves[r])
      memory[r].points.push_back({.time = floor_nanoseconds(level.time), .amounts = level.amounts});
    curves[r] = {};  // free memory for the next rank
  }
  return memory;
}

}  // namespace

TimelineTracks timeline_tracks_of(const TaskGraph& graph, const TaskTimes& times) {
  MW_CHECK(times.start.size() == graph.tasks.size());
  MW_CHECK(times.end.size() == graph.tasks.size());
  auto memory = std::async(std::launch::async, [&] { return memory_of(graph, times); });
  TimelineTracks tracks;
  std::vector<std::uint32_t> first_slice = add_rows(graph, tracks);
  resize_columns(tracks, graph.tasks.size());
  const std::vector<std::uint32_t> slice_of =
      fill_columns(graph, times, std::move(first_slice), tracks);
  add_arrows(graph, slice_of, tracks);
  tracks.coverage = build_coverage(tracks);
  tracks.memory = memory.get();
  return tracks;
}

}  // namespace meshwright::gui
