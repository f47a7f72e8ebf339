/// Discrete-event simulation with link contention. Apart from messages and collectives that share
/// links, tasks follow the rules of the linear pass (simulate.cpp), so that both give the same
/// Ticks without contention.
#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

#include "core/base/check.hpp"
#include "simulator/engine/host_threads.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/network/collective_load.hpp"
#include "simulator/network/contention.hpp"

namespace meshwright {
namespace {

constexpr std::int32_t kNone = -1;
/// Members of a collective other than the first have no flow of their own.
constexpr std::size_t kNoSlot = std::numeric_limits<std::size_t>::max();

/// The reversed dependency graph: the end of a task releases its successors.
struct Successors {
  std::vector<std::int32_t> begin;    ///< by task, and the end: offsets into `tasks`
  std::vector<std::int32_t> tasks;    ///< waiting tasks
  std::vector<std::int32_t> waiting;  ///< by task: prerequisites that have not ended
};

/// Calls visit(prerequisite, task) for dependencies, predecessors on streams, and the sends of
/// receives.
template <class Visit>
void for_each_prerequisite(const TaskGraph& graph, Visit visit) {
  std::vector<std::int32_t> last_on_stream(graph.ranks.size() * kStreamCount, kNone);
  for (std::size_t i = 0; i < graph.tasks.size(); ++i) {
    const Task& task = graph.tasks[i];
    for (const TaskId d : graph.dependencies_of(TaskId(i))) visit(d.index(), i);
    std::int32_t& last = last_on_stream[static_cast<std::size_t>(task.rank) * kStreamCount +
                                        static_cast<std::size_t>(task.stream)];
    if (last != kNone) visit(static_cast<std::size_t>(last), i);
    last = static_cast<std::int32_t>(i);
    if (task.kind == TaskKind::kReceive) visit(static_cast<std::size_t>(task.partner), i);
  }
}

Successors successors_of(const TaskGraph& graph) {
  Successors result;
  result.begin.assign(graph.tasks.size() + 1, 0);
  result.waiting.assign(graph.tasks.size(), 0);
  for_each_prerequisite(graph, [&](std::size_t before, std::size_t task) {
    ++result.begin[before + 1];
    ++result.waiting[task];
  });
  for (std::size_t i = 1; i < result.begin.size(); ++i) result.begin[i] += result.begin[i - 1];
  result.tasks.resize(static_cast<std::size_t>(result.begin.back()));
  std::vector<std::int32_t> next(result.begin.begin(), result.begin.end() - 1);
  for_each_prerequisite(graph, [&](std::size_t before, std::size_t task) {
    result.tasks[static_cast<std::size_t>(next[before]++)] = static_cast<std::int32_t>(task);
  });
  return result;
}

class EventLoop {
 public:
  EventLoop(const TaskGraph& graph, std::span<const WorkPrice> prices, const LinkNetwork& network)
      : graph_(graph),
        prices_(prices),
        network_(network),
        flows_(network.links()),
        successors_(successors_of(graph)),
        ready_(graph.tasks.size()),
        state_(graph.tasks.size(), State::kWaiting),
        receiver_(graph.tasks.size(), kNone),
        slot_(graph.tasks.size()),
        hosts_(graph, prices) {
    times_.start.resize(graph.tasks.size());
    times_.end.resize(graph.tasks.size());
    for (const CollectiveMembers& members : graph.collectives)
      missing_members_.push_back(members.count);
    for (const Task& task : graph.tasks)
      if (task.kind == TaskKind::kReceive)
        receiver_[static_cast<std::size_t>(task.partner)] = task.rank;
  }

  SimulatedTimes run() {
    for (std::size_t i = 0; i < graph_.tasks.size(); ++i)
      if (successors_.waiting[i] == 0 && state_[i] == State::kWaiting) begin(i, Ticks());
    Ticks now;
    share_links(now);
    while (!events_.empty()) {
      now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        end(event, now);
      }
      share_links(now);
    }
    for (const State state : state_) MW_CHECK(state == State::kEnded);
    return std::move(times_);
  }

 private:
  enum class State : std::uint8_t { kWaiting, kRunning, kFlowing, kEnded };
  struct Event {
    Ticks time;
    std::int32_t task;
    bool operator<(const Event& o) const {  // std::priority_queue pops the largest
      return std::tie(o.time, o.task) < std::tie(time, task);
    }
  };

  void schedule(std::size_t i, Ticks end) {
    times_.end[i] = end;
    events_.push({end, static_cast<std::int32_t>(i)});
  }
  void run_until(std::size_t i, Ticks start, Ticks end) {
    state_[i] = State::kRunning;
    times_.start[i] = start;
    schedule(i, end);
  }
  /// Reschedules flows whose rate changed; their stale events stay in the queue and are skipped.
  void share_links(Ticks now) {
    for (const FlowEnd& flow : flows_.rebalance(now)) {
      const Task& task = graph_.tasks[flow.task.index()];
      const int members =
          task.kind == TaskKind::kCollective ? members_of(task).count : 1;  // they end together
      for (int m = 0; m < members; ++m)
        schedule(flow.task.index() + static_cast<std::size_t>(m), flow.end);
    }
  }

  /// Called when the last prerequisite of task i ends.
  void begin(std::size_t i, Ticks now) {
    const Task& task = graph_.tasks[i];
    switch (task.kind) {
      case TaskKind::kReceive:
        receive(i, task);
        break;
      case TaskKind::kCollective:
        join_collective(task, now);
        break;
      case TaskKind::kSend:
        send(i, task, now);
        break;
      default: {
        const Ticks duration = price_of(task).duration, end = now + duration;
        run_until(i, now, hosts_.is_needed() ? hosts_.launch(i, duration, end, times_) : end);
      }
    }
  }

  /// As in the linear pass; the send has ended, so its times are final.
  void receive(std::size_t i, const Task& task) {
    const auto from = static_cast<std::size_t>(task.partner);
    const Ticks latency = price_of(graph_.tasks[from]).latency;
    const Ticks start = std::max(times_.start[from] + latency, ready_[i]);
    run_until(i, start, std::max(start, times_.end[from] + latency));
  }

  void join_collective(const Task& task, Ticks now) {
    const auto c = static_cast<std::size_t>(task.partner);
    if (--missing_members_[c] > 0) return;
    const auto first = static_cast<std::size_t>(graph_.collectives[c].first);
    const auto last = first + static_cast<std::size_t>(graph_.collectives[c].count);
    Ticks duration;
    for (std::size_t i = first; i < last; ++i)
      duration = std::max(duration, price_of(graph_.tasks[i]).duration);
    CollectiveLoad load;
    if (duration > Ticks()) load = load_of(graph_.collectives[c], duration);
    if (load.route.empty()) {
      for (std::size_t i = first; i < last; ++i) run_until(i, now, now + duration);
      return;
    }
    for (std::size_t i = first; i < last; ++i) start_flowing(i, now);
    slot_[first] = flows_.start({.task = TaskId(first),
                                 .route = std::move(load.route),
                                 .limit = load.rate,
                                 .occupancy = duration,
                                 .shares = std::move(load.shares)},
                                now);
  }
  const CollectiveMembers& members_of(const Task& task) const {
    return graph_.collectives[static_cast<std::size_t>(task.partner)];
  }
  CollectiveLoad load_of(const CollectiveMembers& members, Ticks duration) {
    const auto first = static_cast<std::size_t>(members.first);
    devices_.clear();
    for (std::size_t i = first; i < first + static_cast<std::size_t>(members.count); ++i)
      devices_.push_back(device_of(graph_.tasks[i].rank));
    const Work& work = graph_.works[graph_.tasks[first].work.index()];
    return collective_load(work.collective, devices_, network_, duration);
  }
  void start_flowing(std::size_t i, Ticks now) {
    state_[i] = State::kFlowing;
    times_.start[i] = now;
    slot_[i] = kNoSlot;
  }

  void send(std::size_t i, const Task& task, Ticks now) {
    const Ticks occupancy = price_of(task).duration;
    const Bytes bytes = graph_.works[task.work.index()].transfer.bytes;
    std::vector<LinkId> route;
    if (receiver_[i] != kNone)
      route = network_.route(device_of(task.rank), device_of(receiver_[i]));
    if (route.empty() || bytes <= Bytes() || occupancy <= Ticks()) {
      run_until(i, now, now + occupancy);
      return;
    }
    start_flowing(i, now);
    slot_[i] = flows_.start({.task = TaskId(i),
                             .route = std::move(route),
                             .limit = bytes / to_seconds(occupancy),
                             .occupancy = occupancy,
                             .shares = {}},
                            now);
  }

  void end(const Event& event, Ticks now) {
    const auto i = static_cast<std::size_t>(event.task);
    if (state_[i] == State::kEnded || times_.end[i] != event.time) return;  // stale
    if (state_[i] == State::kFlowing && slot_[i] != kNoSlot) flows_.finish(slot_[i]);
    state_[i] = State::kEnded;
    const auto last = static_cast<std::size_t>(successors_.begin[i + 1]);
    for (auto s = static_cast<std::size_t>(successors_.begin[i]); s < last; ++s) {
      const auto next = static_cast<std::size_t>(successors_.tasks[s]);
      const Task& waiting = graph_.tasks[next];
      const bool arrives = waiting.kind == TaskKind::kReceive && waiting.partner == event.task;
      if (!arrives) ready_[next] = std::max(ready_[next], now);
      if (--successors_.waiting[next] == 0) begin(next, now);
    }
  }

  const WorkPrice& price_of(const Task& task) const { return prices_[task.work.index()]; }
  DeviceId device_of(std::int32_t rank) const {
    return graph_.ranks[static_cast<std::size_t>(rank)].device;
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  const LinkNetwork& network_;
  FlowsOnLinks flows_;
  Successors successors_;
  SimulatedTimes times_;
  std::vector<Ticks> ready_;  ///< by task: latest end of its prerequisites, except a receive's send
  std::vector<State> state_;
  std::vector<std::int32_t> receiver_;         ///< by task: rank that receives a send, or kNone
  std::vector<std::size_t> slot_;              ///< by task: slot of its flow, or kNoSlot
  std::vector<DeviceId> devices_;              ///< buffer of load_of()
  std::vector<std::int32_t> missing_members_;  ///< by collective
  std::priority_queue<Event> events_;
  HostThreads hosts_;
};

}  // namespace

SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        const LinkNetwork& network) {
  MW_CHECK(prices.size() == graph.works.size());
  MW_CHECK(graph.dependency_begin.size() == graph.tasks.size() + 1);
  return EventLoop(graph, prices, network).run();
}

}  // namespace meshwright
