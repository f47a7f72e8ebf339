#include "simulator/engine/simulate.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "simulator/engine/host_threads.hpp"

namespace meshwright {
namespace {

/// One pass over the tasks in their order. Reads tasks and dependencies strictly forward; the only
/// other memory touched is the ends of earlier tasks, the prices (few) and one time per stream.
/// If kOwnDurations, `durations` (by task) replace the durations of the prices.
template <bool kOwnDurations>
class LinearPass {
 public:
  LinearPass(const TaskGraph& graph, std::span<const WorkPrice> prices,
             std::span<const Ticks> durations, SimulatedTimes& times)
      : graph_(graph),
        prices_(prices),
        durations_(durations),
        times_(times),
        stream_free_(graph.ranks.size() * kStreamCount),
        hosts_(graph, prices) {}

  void run() {
    const std::size_t count = graph_.tasks.size();
    for (std::size_t i = 0; i < count;) {
      const Task& task = graph_.tasks[i];
      switch (task.kind) {
        case TaskKind::kReceive:
          receive(i++, task);
          break;
        case TaskKind::kCollective:
          i = collective(i, task);
          break;
        default: {
          const Ticks start = ready(i, task);
          const Ticks end = start + duration_of(i, task);
          place(i, task, start,
                hosts_.is_needed() ? hosts_.launch(i, end - start, end, times_) : end);
          ++i;
        }
      }
    }
  }

 private:
  Ticks duration_of(std::size_t i, const Task& task) const {
    if constexpr (kOwnDurations)
      return durations_[i];
    else
      return prices_[task.work.index()].duration;
  }
  Ticks& free_time(const Task& task) {
    return stream_free_[static_cast<std::size_t>(task.rank) * kStreamCount +
                        static_cast<std::size_t>(task.stream)];
  }
  Ticks ready(std::size_t i, const Task& task) {
    Ticks at = free_time(task);
    const auto end = static_cast<std::size_t>(graph_.dependency_begin[i + 1]);
    for (auto d = static_cast<std::size_t>(graph_.dependency_begin[i]); d < end; ++d)
      at = std::max(at, times_.end[graph_.dependencies[d].index()]);
    return at;
  }
  void place(std::size_t i, const Task& task, Ticks start, Ticks end) {
    times_.start[i] = start;
    times_.end[i] = end;
    free_time(task) = end;
  }
  /// A receive spans its send, shifted by the latency. Messages of a channel arrive in order, so a
  /// message never overtakes the one before it.
  void receive(std::size_t i, const Task& task) {
    const auto send = static_cast<std::size_t>(task.partner);
    const Ticks latency = prices_[graph_.tasks[send].work.index()].latency;
    const Ticks start = std::max(times_.start[send] + latency, ready(i, task));
    place(i, task, start, std::max(start, times_.end[send] + latency));
  }
  /// Members wait for the last one to arrive; a span covers the common transfer only. Returns the
  /// index of the task after the last member.
  std::size_t collective(std::size_t first, const Task& task) {
    const CollectiveMembers& members = graph_.collectives[static_cast<std::size_t>(task.partner)];
    const std::size_t last = first + static_cast<std::size_t>(members.count);
    Ticks start, duration;
    for (std::size_t i = first; i < last; ++i) {
      start = std::max(start, ready(i, graph_.tasks[i]));
      duration = std::max(duration, duration_of(i, graph_.tasks[i]));
    }
    for (std::size_t i = first; i < last; ++i) place(i, graph_.tasks[i], start, start + duration);
    return last;
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  std::span<const Ticks> durations_;
  SimulatedTimes& times_;
  std::vector<Ticks> stream_free_;  ///< [rank, stream]: end of its last task so far
  HostThreads hosts_;
};

template <bool kOwnDurations>
void run_linear_pass(const TaskGraph& graph, std::span<const WorkPrice> prices,
                     std::span<const Ticks> durations, SimulatedTimes& times) {
  MW_CHECK(prices.size() == graph.works.size());
  MW_CHECK(graph.dependency_begin.size() == graph.tasks.size() + 1);
  times.start.resize(graph.tasks.size());
  times.end.resize(graph.tasks.size());
  LinearPass<kOwnDurations>(graph, prices, durations, times).run();
}

}  // namespace

void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices, SimulatedTimes& times) {
  run_linear_pass<false>(graph, prices, {}, times);
}

void simulate(const TaskGraph& graph, std::span<const WorkPrice> prices,
              std::span<const Ticks> durations, SimulatedTimes& times) {
  MW_CHECK(durations.size() == graph.tasks.size());
  run_linear_pass<true>(graph, prices, durations, times);
}

SimulatedTimes simulate(const TaskGraph& graph, std::span<const WorkPrice> prices) {
  SimulatedTimes times;
  simulate(graph, prices, times);
  return times;
}

Ticks makespan(const SimulatedTimes& times) {
  const auto last = std::max_element(times.end.begin(), times.end.end());
  return last == times.end.end() ? Ticks() : *last;
}

}  // namespace meshwright
