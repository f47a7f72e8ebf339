#include "gui/timeline/causes.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/base/check.hpp"
#include "simulator/evaluate/idle_parts.hpp"

namespace meshwright::gui {
namespace {

constexpr std::int32_t kNoTask = -1;

/// The slice of every task: slices of a stream are in task order.
std::vector<std::uint32_t> slice_of_tasks(const TaskGraph& graph, const TimelineTracks& tracks) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> row_of;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    row_of[{tracks.rows[row].rank, tracks.rows[row].stream}] = row;
  std::vector<std::size_t> next(graph.ranks.size() * kStreamCount, tracks.slice_count());
  for (std::size_t i = 0; i < next.size(); ++i) {
    const std::int32_t rank = graph.ranks[i / kStreamCount].rank.value;
    const auto row = row_of.find({rank, static_cast<std::int32_t>(i % kStreamCount)});
    if (row != row_of.end()) next[i] = tracks.row_begin[row->second];
  }
  std::vector<std::uint32_t> slice(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    std::size_t& at = next[static_cast<std::size_t>(task.rank) * kStreamCount +
                           static_cast<std::size_t>(task.stream)];
    MW_CHECK(at < tracks.slice_count());
    slice[i] = static_cast<std::uint32_t>(at++);
  }
  return slice;
}

/// Causes of task start times.
class TaskCauses {
 public:
  TaskCauses(const TaskGraph& graph, const TaskTimes& times)
      : graph_(graph), times_(times), predecessors_(stream_predecessors(graph)) {}

  /// The prerequisite that ended last. Members of a collective wait for the last of them; a receive
  /// waits for its send, unless its stream was busy.
  std::vector<std::int32_t> bindings() const {
    std::vector<std::int32_t> binding(graph_.tasks.size());
    for (std::size_t i = 0; i < binding.size(); ++i) binding[i] = own_binding(i);
    for (const CollectiveMembers& members : graph_.collectives) {
      const auto first = static_cast<std::size_t>(members.first);
      const std::size_t last = first + static_cast<std::size_t>(members.count);
      std::int32_t latest = kNoTask;
      for (std::size_t i = first; i < last; ++i)
        if (latest == kNoTask || (binding[i] != kNoTask && end_of(latest) < end_of(binding[i])))
          latest = binding[i];
      for (std::size_t i = first; i < last; ++i) binding[i] = latest;
    }
    return binding;
  }

  /// How much later each task could end without delaying the end of the step.
  std::vector<Ticks> slacks() const {
    const Ticks step_end = *std::max_element(times_.end.begin(), times_.end.end());
    std::vector<Ticks> slack(graph_.tasks.size());
    for (std::size_t i = 0; i < slack.size(); ++i) slack[i] = step_end - times_.end[i];
    for (std::size_t i = graph_.tasks.size(); i-- > 0;) {
      const Task& task = graph_.tasks[i];
      if (task.kind == TaskKind::kCollective) share_slack(i, slack);
      const auto allow = [&](std::size_t before, Ticks gap) {
        slack[before] = std::min(slack[before], slack[i] + gap);
      };
      if (task.kind == TaskKind::kReceive) allow(static_cast<std::size_t>(task.partner), Ticks(0));
      if (predecessors_[i] != kNoTask) {
        const auto before = static_cast<std::size_t>(predecessors_[i]);
        allow(before, times_.start[i] - times_.end[before]);
      }
      for (const TaskId d : graph_.dependencies_of(TaskId(i)))
        allow(d.index(), times_.start[i] - times_.end[d.index()]);
    }
    for (Ticks& s : slack) s = std::max(s, Ticks(0));
    return slack;
  }

  /// Calls visit(task, prerequisite) for all dependencies, including stream order and messages.
  template <class Visit>
  void each_edge(Visit visit) const {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      if (predecessors_[i] != kNoTask) visit(i, static_cast<std::size_t>(predecessors_[i]));
      for (const TaskId d : graph_.dependencies_of(TaskId(i))) visit(i, d.index());
      if (graph_.tasks[i].kind == TaskKind::kReceive)
        visit(i, static_cast<std::size_t>(graph_.tasks[i].partner));
    }
  }

 private:
  Ticks end_of(std::int32_t task) const { return times_.end[static_cast<std::size_t>(task)]; }

  std::int32_t own_binding(std::size_t i) const {
    const std::int32_t latest = binding_prerequisite(graph_, times_, predecessors_, TaskId(i));
    const Task& task = graph_.tasks[i];
    if (task.kind != TaskKind::kReceive) return latest;
    const bool waited_for_turn = latest != kNoTask && end_of(latest) >= times_.start[i];
    return waited_for_turn ? latest : task.partner;
  }

  /// At the last member of a collective: all members share the smallest slack.
  void share_slack(std::size_t i, std::vector<Ticks>& slack) const {
    const CollectiveMembers& members =
        graph_.collectives[static_cast<std::size_t>(graph_.tasks[i].partner)];
    const auto first = slack.begin() + members.first, end = first + members.count;
    if (slack.begin() + static_cast<std::ptrdiff_t>(i) + 1 != end) return;
    std::fill(first, end, *std::min_element(first, end));
  }

  const TaskGraph& graph_;
  const TaskTimes& times_;
  std::vector<std::int32_t> predecessors_;
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;  ///< slice, its prerequisite

/// Builds a CSR list from edges: by slice, or by prerequisite if `backwards`.
void compress(const std::vector<Edge>& edges, std::size_t slices, bool backwards,
              std::vector<std::uint32_t>& begin, std::vector<std::uint32_t>& values) {
  const auto key = [&](const Edge& e) { return backwards ? e.second : e.first; };
  begin.assign(slices + 1, 0);
  for (const Edge& edge : edges) ++begin[key(edge) + 1];
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  values.resize(edges.size());
  for (const Edge& edge : edges) values[next[key(edge)]++] = backwards ? edge.first : edge.second;
}

void add_gaps(const TimelineTracks& tracks, TimelineCauses& causes) {
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    if (!tracks.rows[row].is_compute || tracks.row_begin[row] == tracks.row_begin[row + 1])
      continue;
    Nanoseconds now;
    const auto gap_until = [&](Nanoseconds to, std::int64_t slice) {
      if (now < to)
        causes.bubbles.push_back(
            {.row = static_cast<std::uint32_t>(row), .slice_after = slice, .from = now, .to = to});
    };
    for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
      gap_until(tracks.start_of(s), static_cast<std::int64_t>(s));
      now = tracks.end_of(s);
    }
    gap_until(tracks.end, -1);
  }
  std::stable_sort(causes.bubbles.begin(), causes.bubbles.end(),
                   [](const Bubble& a, const Bubble& b) { return b.to - b.from < a.to - a.from; });
}

IdleCause cause_of(const meshwright::IdlePart& part) {
  if (part.exposed) return IdleCause::kCommunication;
  switch (part.cause) {
    case BubbleCause::kWarmUp:
      return IdleCause::kWarmUp;
    case BubbleCause::kDrain:
      return IdleCause::kDrain;
    case BubbleCause::kDependency:
    case BubbleCause::kImbalance:
      return IdleCause::kDependency;
  }
  return IdleCause::kUnknown;
}

void add_idle_spans(const TaskGraph& graph, const TaskTimes& times, const TimelineTracks& tracks,
                    TimelineCauses& causes) {
  const std::vector<std::vector<IdlePart>> parts = idle_parts(graph, times);
  std::map<std::int32_t, std::size_t> rank_index;
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) rank_index[graph.ranks[r].rank.value] = r;
  causes.idle_of_row.resize(tracks.rows.size());
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    const auto rank = rank_index.find(tracks.rows[row].rank);
    if (!tracks.rows[row].is_compute || rank == rank_index.end()) continue;
    for (const IdlePart& part : parts[rank->second])
      causes.idle_of_row[row].push_back({floor_nanoseconds(part.from) - tracks.base,
                                         floor_nanoseconds(part.to) - tracks.base, cause_of(part)});
  }
}

/// Walks back from the slice that ends last along its binding prerequisites.
void add_critical_path(const TimelineTracks& tracks, TimelineCauses& causes) {
  causes.is_critical.assign(tracks.slice_count(), false);
  std::uint32_t current = kNoSlice;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
    if (tracks.row_begin[row] == tracks.row_begin[row + 1]) continue;
    const std::size_t last = tracks.row_begin[row + 1] - 1;
    if (current == kNoSlice || tracks.end_of(last) > tracks.end_of(current))
      current = static_cast<std::uint32_t>(last);
  }
  while (current != kNoSlice && !causes.is_critical[current]) {
    causes.is_critical[current] = true;
    causes.critical_path.push_back(current);
    current = causes.binding[current];
  }
  std::reverse(causes.critical_path.begin(), causes.critical_path.end());
  causes.critical_of_row.resize(tracks.rows.size());
  for (const std::uint32_t slice : causes.critical_path)
    causes.critical_of_row[tracks.row_of(slice)].push_back(slice);
  // Because of receives the path can return to a row at an earlier time than it left it.
  for (auto& slices : causes.critical_of_row) std::sort(slices.begin(), slices.end());
}

}  // namespace

std::string_view name_of(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauseCount> kNames{"warm-up", "drain", "dependency",
                                                                 "communication", "unknown"};
  return kNames[static_cast<std::size_t>(cause)];
}

TimelineCauses timeline_causes_of(const TaskGraph& graph, const TaskTimes& times,
                                  const TimelineTracks& tracks) {
  MW_CHECK(times.start.size() == graph.tasks.size());
  MW_CHECK(tracks.slice_count() == graph.tasks.size());
  TimelineCauses causes;
  if (graph.tasks.empty()) return causes;
  const std::vector<std::uint32_t> slice = slice_of_tasks(graph, tracks);
  const TaskCauses of_tasks(graph, times);

  causes.binding.assign(slice.size(), kNoSlice);
  causes.slack_ns.resize(slice.size());
  const std::vector<std::int32_t> bindings = of_tasks.bindings();
  const std::vector<Ticks> slacks = of_tasks.slacks();
  for (std::size_t i = 0; i < slice.size(); ++i) {
    if (bindings[i] != kNoTask)
      causes.binding[slice[i]] = slice[static_cast<std::size_t>(bindings[i])];
    causes.slack_ns[slice[i]] = floor_nanoseconds(slacks[i]).value;
  }
  std::vector<Edge> edges;
  of_tasks.each_edge([&](std::size_t task, std::size_t before) {
    edges.emplace_back(slice[task], slice[before]);
  });
  compress(edges, slice.size(), false, causes.before_begin, causes.before);
  compress(edges, slice.size(), true, causes.after_begin, causes.after);
  add_critical_path(tracks, causes);
  add_gaps(tracks, causes);
  add_idle_spans(graph, times, tracks, causes);
  return causes;
}

TimelineCauses timeline_causes_of(const TimelineTracks& tracks) {
  TimelineCauses causes;
  std::vector<Edge> edges;
  for (std::size_t row = 0; row < tracks.rows.size(); ++row)
    for (std::size_t s = tracks.row_begin[row] + 1; s < tracks.row_begin[row + 1]; ++s)
      edges.emplace_back(static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(s - 1));
  for (const SliceArrow& arrow : tracks.arrows) edges.emplace_back(arrow.to, arrow.from);
  compress(edges, tracks.slice_count(), false, causes.before_begin, causes.before);
  compress(edges, tracks.slice_count(), true, causes.after_begin, causes.after);
  causes.binding.assign(tracks.slice_count(), kNoSlice);
  for (std::size_t s = 0; s < tracks.slice_count(); ++s)
    for (const std::uint32_t before : causes.before_of(s))
      if (causes.binding[s] == kNoSlice || tracks.end_of(causes.binding[s]) < tracks.end_of(before))
        causes.binding[s] = before;
  add_gaps(tracks, causes);
  return causes;
}

std::vector<std::uint32_t> chain_of_causes(const TimelineCauses& causes,
                                           const TimelineTracks& tracks, std::size_t slice,
                                           std::size_t most) {
  std::vector<std::uint32_t> chain;
  std::size_t current = slice;
  while (chain.size() < most && current < causes.binding.size()) {
    const std::uint32_t before = causes.binding[current];
    if (before == kNoSlice) break;
    // Directly after its predecessor on the same row: the row was busy, the chain ends here.
    const bool row_was_busy = tracks.row_of(before) == tracks.row_of(current) &&
                              tracks.end_of(before) >= tracks.start_of(current);
    if (row_was_busy && !chain.empty()) break;
    chain.push_back(before);
    if (row_was_busy) break;
    current = before;
  }
  return chain;
}

}  // namespace meshwright::gui
