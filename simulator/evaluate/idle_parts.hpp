/// Idle time of the compute streams by cause: the gaps of a timeline, split where the cause
/// changes. evaluate() adds up the same parts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/timeline/evaluation.hpp"
#include "core/timeline/timeline_of.hpp"

namespace meshwright {

/// Predecessor of every task on its stream; -1: none. O(tasks).
std::vector<std::int32_t> stream_predecessors(const TaskGraph& graph);

/// The prerequisite of a task that ends last: a dependency, or the predecessor on the stream; -1:
/// none. Ties: the predecessor, then the first dependency.
inline std::int32_t binding_prerequisite(const TaskGraph& graph, const TaskTimes& times,
                                         std::span<const std::int32_t> predecessors, TaskId task) {
  std::int32_t latest = predecessors[task.index()];
  for (const TaskId d : graph.dependencies_of(task))
    if (latest < 0 || times.end[static_cast<std::size_t>(latest)] < times.end[d.index()])
      latest = d.value;
  return latest;
}

/// Calls visit(task, from, to) for every part of the idle time [from, to) of a rank that is exposed
/// communication: traced back from `latest`, the last prerequisite the rank waited for (-1: none),
/// as long as that is a message or a collective. A message counts from the start of its send,
/// including its latency; idle time before that is caused by the sender. Latest part first.
template <class Visit>
void each_exposed_part(const TaskGraph& graph, const TaskTimes& times,
                       std::span<const std::int32_t> predecessors, Ticks from, Ticks to,
                       std::int32_t latest, Visit visit) {
  constexpr std::int32_t kNone = -1;
  std::int32_t current = latest;
  const std::int32_t rank =
      latest == kNone ? kNone : graph.tasks[static_cast<std::size_t>(latest)].rank;
  while (current != kNone && from < to) {
    const auto index = static_cast<std::size_t>(current);
    const Task& task = graph.tasks[index];
    const bool received = task.kind == TaskKind::kReceive;
    const bool communicates =
        received || task.kind == TaskKind::kCollective || task.kind == TaskKind::kSend;
    if (!communicates || task.rank != rank) return;
    const Ticks begin = times.start[received ? static_cast<std::size_t>(task.partner) : index];
    const Ticks end = to < times.end[index] ? to : times.end[index];
    const Ticks visible_begin = from < begin ? begin : from;
    if (visible_begin < to) to = visible_begin;
    if (to < end) visit(task, to, end);
    current = received ? kNone : binding_prerequisite(graph, times, predecessors, TaskId(current));
  }
}

struct IdlePart {
  Ticks from, to;
  BubbleCause cause = BubbleCause::kDependency;  ///< never kImbalance, which is defined by sums
  std::optional<Axis> exposed;                   ///< exposed communication of this axis, no bubble
  friend bool operator==(const IdlePart&, const IdlePart&) = default;
};

/// By index in TaskGraph::ranks, in order of time, from the first start to the last end over all
/// ranks. O(tasks + dependencies).
std::vector<std::vector<IdlePart>> idle_parts(const TaskGraph& graph, const TaskTimes& times);

}  // namespace meshwright
