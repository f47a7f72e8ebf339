/// Where the streams of a graph stand, and which of them wait for the ends of which tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"

namespace meshwright {

class StreamOrder {
 public:
  static constexpr std::int32_t kNone = -1;

  /// A stream with the task that it runs next.
  struct State {
    std::int32_t task = kNone;         ///< kNone: all tasks have ended
    std::int32_t checked = 0;          ///< how many prerequisites of the task have ended
    Ticks ready;                       ///< latest end of these and of the task before it
    std::int32_t next_waiter = kNone;  ///< further stream that waits for the same task
  };

  /// With `hosts`, a compute task also waits for the preceding one of its rank, on whatever stream:
  /// the host thread launches them in order.
  StreamOrder(const TaskGraph& graph, bool hosts)
      : streams_(graph.ranks.size() * kStreamCount), places_(graph.tasks.size()) {
    std::vector<std::int32_t> last(streams_.size(), kNone);
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const std::size_t s = stream_of(graph.tasks[i]);
      const auto task = static_cast<std::int32_t>(i);
      (last[s] == kNone ? streams_[s].task : places_[static_cast<std::size_t>(last[s])].next) =
          task;
      last[s] = task;
    }
    if (hosts) order_launches(graph);
  }

  static std::size_t stream_of(const Task& task) {
    return static_cast<std::size_t>(task.rank) * kStreamCount +
           static_cast<std::size_t>(task.stream);
  }
  std::vector<State>& streams() { return streams_; }
  /// The host launches this task first; kNone: it does not matter.
  std::int32_t launched_before(std::size_t task) const {
    return launched_before_.empty() ? kNone : launched_before_[task];
  }
  /// Until advance() of the stream that runs `task`.
  void wait(std::size_t stream, std::size_t task) {
    streams_[stream].next_waiter = places_[task].first_waiter;
    places_[task].first_waiter = static_cast<std::int32_t>(stream);
  }
  /// The task of the stream has ended at `end`: appends the streams that wait for it to `woken`,
  /// and turns to the next one.
  void advance(State& stream, Ticks end, std::vector<std::int32_t>& woken) const {
    const Place& place = places_[static_cast<std::size_t>(stream.task)];
    for (std::int32_t s = place.first_waiter; s != kNone;
         s = streams_[static_cast<std::size_t>(s)].next_waiter)
      woken.push_back(s);
    stream = {.task = place.next, .ready = end};
  }

 private:
  void order_launches(const TaskGraph& graph) {
    std::vector<std::int32_t> last(graph.ranks.size(), kNone);
    for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
      const Task& task = graph.tasks[i];
      if (!is_compute(task.kind)) continue;
      std::int32_t& before = last[static_cast<std::size_t>(task.rank)];
      if (before != kNone && graph.tasks[static_cast<std::size_t>(before)].stream != task.stream) {
        if (launched_before_.empty()) launched_before_.assign(graph.tasks.size(), kNone);
        launched_before_[i] = before;
      }
      before = static_cast<std::int32_t>(i);
    }
  }

  struct Place {
    std::int32_t next = kNone;          ///< the task after it on its stream
    std::int32_t first_waiter = kNone;  ///< a stream that waits for its end
  };
  std::vector<State> streams_;                 ///< [rank, stream]
  std::vector<Place> places_;                  ///< by task
  std::vector<std::int32_t> launched_before_;  ///< by task; empty: every rank has one stream only
};

}  // namespace meshwright
