#include "simulator/evaluate/idle_parts.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {

std::vector<std::int32_t> stream_predecessors(const TaskGraph& graph) {
  std::vector<std::int32_t> last(graph.ranks.size() * kStreamCount, -1);
  std::vector<std::int32_t> predecessors(graph.tasks.size());
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    std::int32_t& before = last[static_cast<std::size_t>(task.rank) * kStreamCount +
                                static_cast<std::size_t>(task.stream)];
    predecessors[i] = before;
    before = static_cast<std::int32_t>(i);
  }
  return predecessors;
}

namespace {

/// State of one rank during the walk over its tasks.
struct RankState {
  Ticks first_pass = Ticks::max(), last_pass;
  Ticks compute_end;
  std::int32_t last_collective = -1;
};

class IdleWalk {
 public:
  IdleWalk(const TaskGraph& graph, const TaskTimes& times)
      : graph_(graph),
        times_(times),
        predecessors_(stream_predecessors(graph)),
        ranks_(graph.ranks.size()),
        parts_(graph.ranks.size()) {}

  std::vector<std::vector<IdlePart>> run() {
    survey();
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      if (task.stream != Stream::kCompute) continue;
      const auto rank = static_cast<std::size_t>(task.rank);
      add_gap(rank, times_.start[i],
              binding_prerequisite(graph_, times_, predecessors_, TaskId(i)));
      ranks_[rank].compute_end = times_.end[i];
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      add_gap(rank, step_end_, ranks_[rank].last_collective);
    return std::move(parts_);
  }

 private:
  void survey() {
    Ticks step_start = Ticks::max();
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i) {
      const Task& task = graph_.tasks[i];
      RankState& rank = ranks_[static_cast<std::size_t>(task.rank)];
      step_start = std::min(step_start, times_.start[i]);
      step_end_ = std::max(step_end_, times_.end[i]);
      if (is_pass(task.kind)) {
        rank.first_pass = std::min(rank.first_pass, times_.start[i]);
        rank.last_pass = std::max(rank.last_pass, times_.end[i]);
      } else if (task.kind == TaskKind::kCollective) {
        std::int32_t& latest = rank.last_collective;
        if (latest < 0 || times_.end[static_cast<std::size_t>(latest)] < times_.end[i])
          latest = static_cast<std::int32_t>(i);
      }
    }
    for (RankState& rank : ranks_) rank.compute_end = step_start;
  }

  /// Adds the gap from the end of the last compute task to `to`.
  void add_gap(std::size_t rank, Ticks to, std::int32_t latest) {
    const RankState& state = ranks_[rank];
    const Ticks from = state.compute_end;
    if (to <= from) return;
    const BubbleCause cause = to <= state.first_pass    ? BubbleCause::kWarmUp
                              : from >= state.last_pass ? BubbleCause::kDrain
                                                        : BubbleCause::kDependency;
    exposed_.clear();
    each_exposed_part(graph_, times_, predecessors_, from, to, latest,
                      [&](const Task& task, Ticks begin, Ticks end) {
                        exposed_.push_back({begin, end, cause, axis_of(graph_, task)});
                      });
    Ticks now = from;
    const auto bubble_until = [&](Ticks end) {
      if (now < end) parts_[rank].push_back({now, end, cause, std::nullopt});
    };
    for (auto part = exposed_.rbegin(); part != exposed_.rend(); ++part) {
      bubble_until(part->from);
      parts_[rank].push_back(*part);
      now = part->to;
    }
    bubble_until(to);
  }

  const TaskGraph& graph_;
  const TaskTimes& times_;
  std::vector<std::int32_t> predecessors_;
  std::vector<RankState> ranks_;
  std::vector<std::vector<IdlePart>> parts_;
  std::vector<IdlePart> exposed_;  ///< of one gap, latest first
  Ticks step_end_;
};

}  // namespace

std::vector<std::vector<IdlePart>> idle_parts(const TaskGraph& graph, const TaskTimes& times) {
  MW_CHECK(times.start.size() == graph.tasks.size());
  MW_CHECK(times.end.size() == graph.tasks.size());
  return IdleWalk(graph, times).run();
}

}  // namespace meshwright
