#include "core/timeline/memory_curve.hpp"

namespace meshwright {
namespace {

/// The curve of one rank; its tasks must be passed in start order.
class Curve {
 public:
  Curve(const MemoryAmounts& resident, std::size_t tasks, std::vector<MemoryLevel>& levels)
      : held_(resident), levels_(&levels) {
    levels_->reserve(2 * tasks + 1);
    record(Ticks(), held_);
  }
  void run(const Work& work, Ticks start, Ticks end) {
    held_ += work.acquired;
    MemoryAmounts during = held_;
    during += work.transient;
    record(start, during);
    held_ -= work.released;
    record(end, held_);
  }

 private:
  /// Only the last change at a given time is stored; times without a net change have no level.
  void record(Ticks time, const MemoryAmounts& amounts) {
    if (!levels_->empty() && levels_->back().time == time) levels_->pop_back();
    if (!levels_->empty() && levels_->back().amounts == amounts) return;
    levels_->push_back({.time = time, .amounts = amounts});
  }
  MemoryAmounts held_;
  std::vector<MemoryLevel>* levels_;
};

}  // namespace

std::vector<std::vector<MemoryLevel>> memory_curves(const TaskGraph& graph, const TaskTimes& times,
                                                    const std::vector<bool>& is_done) {
  std::vector<std::size_t> tasks_of_rank(graph.ranks.size(), 0);
  for (const Task& task : graph.tasks)
    tasks_of_rank[static_cast<std::size_t>(task.rank)] += task.stream == Stream::kCompute;
  std::vector<std::vector<MemoryLevel>> levels(graph.ranks.size());
  std::vector<Curve> curves;
  curves.reserve(graph.ranks.size());
  for (std::size_t r = 0; r < graph.ranks.size(); ++r)
    curves.emplace_back(graph.ranks[r].resident, tasks_of_rank[r], levels[r]);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    if (task.stream != Stream::kCompute || (!is_done.empty() && !is_done[i])) continue;
    curves[static_cast<std::size_t>(task.rank)].run(graph.works[task.work.index()], times.start[i],
                                                    times.end[i]);
  }
  return levels;
}

}  // namespace meshwright
