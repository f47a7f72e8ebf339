/// Discrete-event simulation with link contention. Apart from messages and collectives that share
/// links, tasks follow the rules of the linear pass (simulate.cpp), so that both give the same
/// Ticks without contention.
///
/// Only what shares links needs events. Any other task has its times as soon as its prerequisites
/// have theirs, however far ahead of the current event.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/base/check.hpp"
#include "simulator/engine/event_queue.hpp"
#include "simulator/engine/host_threads.hpp"
#include "simulator/engine/shared_links.hpp"
#include "simulator/engine/stream_order.hpp"
#include "simulator/network/contention.hpp"

namespace meshwright {
namespace {

constexpr std::int32_t kNoPath = -1;

/// The paths of all messages of a graph, each stored once.
class MessagePaths {
 public:
  MessagePaths(const TaskGraph& graph, const SharedLinks& shared) : path_of_(graph.tasks.size()) {
    std::fill(path_of_.begin(), path_of_.end(), kNoPath);
    struct Latest {
      std::int32_t from = -1, path = kNoPath;
    };
    std::vector<Latest> latest(graph.ranks.size() * kStreamCount);  // by stream that receives
    for (const Task& task : graph.tasks) {
      if (task.kind != TaskKind::kReceive) continue;
      const Task& send = graph.tasks[static_cast<std::size_t>(task.partner)];
      Latest& same = latest[static_cast<std::size_t>(task.rank) * kStreamCount +
                            static_cast<std::size_t>(task.stream)];
      if (same.from != send.rank) same = {send.rank, find(send.rank, task.rank, shared)};
      path_of_[static_cast<std::size_t>(task.partner)] = same.path;
    }
  }
  /// nullptr: over no links.
  const LinkPath* of(std::size_t send) const {
    const std::int32_t path = path_of_[send];
    return path == kNoPath ? nullptr : &paths_[static_cast<std::size_t>(path)];
  }

 private:
  std::int32_t find(std::int32_t from, std::int32_t to, const SharedLinks& shared) {
    const std::uint64_t key = std::uint64_t(std::uint32_t(from)) << 32 | std::uint32_t(to);
    const auto [found, is_new] = known_.try_emplace(key, kNoPath);
    if (!is_new) return found->second;
    LinkPath path = shared.message(from, to);
    if (path.links.empty()) return kNoPath;
    paths_.push_back(std::move(path));
    return found->second = static_cast<std::int32_t>(paths_.size()) - 1;
  }
  std::vector<LinkPath> paths_;
  std::vector<std::int32_t> path_of_;  ///< by task: index in paths_ of a send, or kNoPath
  std::unordered_map<std::uint64_t, std::int32_t> known_;  ///< by sender and receiver
};

class EventLoop {
 public:
  EventLoop(const TaskGraph& graph, std::span<const WorkPrice> prices,
            std::span<const Ticks> durations, const SharedLinks& shared)
      : graph_(graph),
        prices_(prices),
        durations_(durations),
        shared_(shared),
        flows_(shared.capacities),
        hosts_(graph, prices),
        order_(graph, hosts_.is_needed()),
        paths_(graph, shared) {
    times_.start.resize(graph.tasks.size());
    times_.end.assign(graph.tasks.size(), kUnknown);
    for (const CollectiveMembers& members : graph.collectives)
      missing_members_.push_back(members.count);
  }

  SimulatedTimes run() {
    for (std::size_t s = 0; s < order_.streams().size(); ++s) run_stream(s);
    run_woken();
    while (!events_.empty()) {
      const Ticks now = events_.first().time;
      while (!events_.empty() && events_.first().time == now) {
        const Event event = events_.pop();
        if (event.slot == kStarts)
          start_flow(static_cast<std::size_t>(event.task), now);
        else
          end_flow(event);
      }
      for (const FlowEnd& flow : flows_.rebalance(now)) {
        flow_end_[flow.slot] = flow.end;
        events_.push({flow.end, flow.task.value, static_cast<std::int32_t>(flow.slot)});
      }
    }
    MW_CHECK(ended_ == graph_.tasks.size());
    return std::move(times_);
  }

 private:
  static constexpr std::int32_t kNone = StreamOrder::kNone, kStarts = -1;
  static constexpr Ticks kUnknown = Ticks::max();
  /// A flow starts, or, unless it was rescheduled, the flow in `slot` ends.
  struct Event {
    Ticks time;
    std::int32_t task, slot;
    bool operator<(const Event& o) const { return time < o.time; }
  };

  /// Runs the tasks of a stream until one waits for the end of another or shares links.
  void run_stream(std::size_t s) {
    StreamOrder::State& stream = order_.streams()[s];
    while (stream.task != kNone) {
      const auto i = static_cast<std::size_t>(stream.task);
      const Task& task = graph_.tasks[i];
      if (!is_ready(s, stream, i, task)) return;
      times_.start[i] = stream.ready;
      const std::optional<Ticks> end = begin(i, task);
      if (!end) return;
      end_task(stream, i, *end);
    }
  }
  void run_woken() {
    while (!woken_.empty()) {
      const auto s = static_cast<std::size_t>(woken_.back());
      woken_.pop_back();
      run_stream(s);
    }
  }
  /// If a prerequisite has not ended yet, the stream waits for it.
  bool is_ready(std::size_t s, StreamOrder::State& stream, std::size_t i, const Task& task) {
    const std::span<const TaskId> dependencies = graph_.dependencies_of(TaskId(i));
    for (auto d = static_cast<std::size_t>(stream.checked); d < dependencies.size(); ++d) {
      const Ticks end = times_.end[dependencies[d].index()];
      if (end == kUnknown) {
        stream.checked = static_cast<std::int32_t>(d);
        return wait(s, dependencies[d].index());
      }
      stream.ready = std::max(stream.ready, end);
    }
    stream.checked = static_cast<std::int32_t>(dependencies.size());
    const std::int32_t other =
        task.kind == TaskKind::kReceive ? task.partner : order_.launched_before(i);
    if (other == kNone || times_.end[static_cast<std::size_t>(other)] != kUnknown) return true;
    return wait(s, static_cast<std::size_t>(other));
  }
  bool wait(std::size_t s, std::size_t task) {
    order_.wait(s, task);
    return false;
  }
  void end_task(StreamOrder::State& stream, std::size_t i, Ticks end) {
    times_.end[i] = end;
    ++ended_;
    order_.advance(stream, end, woken_);
  }
  /// For a task that has taken part in a flow.
  void end_and_go_on(std::size_t i, Ticks end) {
    const std::size_t s = StreamOrder::stream_of(graph_.tasks[i]);
    end_task(order_.streams()[s], i, end);
    woken_.push_back(static_cast<std::int32_t>(s));
  }

  /// The end of a task that is ready; absent if it shares links, or waits for other members.
  std::optional<Ticks> begin(std::size_t i, const Task& task) {
    switch (task.kind) {
      case TaskKind::kReceive:
        return receive(i, task);
      case TaskKind::kCollective:
        join_collective(task);
        return std::nullopt;
      case TaskKind::kSend:
        if (paths_.of(i) == nullptr || bytes_of(task) <= Bytes() || duration_of(i) <= Ticks())
          return times_.start[i] + duration_of(i);
        events_.push({times_.start[i], static_cast<std::int32_t>(i), kStarts});
        return std::nullopt;
      default: {
        const Ticks duration = duration_of(i), end = times_.start[i] + duration;
        return hosts_.is_needed() ? hosts_.launch(i, duration, end, times_) : end;
      }
    }
  }

  /// As in the linear pass; the times of the send are final.
  Ticks receive(std::size_t i, const Task& task) {
    const auto from = static_cast<std::size_t>(task.partner);
    const Ticks latency = prices_[graph_.tasks[from].work.index()].latency;
    times_.start[i] = std::max(times_.start[from] + latency, times_.start[i]);
    return std::max(times_.start[i], times_.end[from] + latency);
  }

  /// Members wait for the last one.
  void join_collective(const Task& task) {
    const auto c = static_cast<std::size_t>(task.partner);
    if (--missing_members_[c] > 0) return;
    Ticks start;
    each_member(c, [&](std::size_t i) { start = std::max(start, times_.start[i]); });
    events_.push({start, graph_.collectives[c].first, kStarts});
  }
  template <class Visit>
  void each_member(std::size_t collective, Visit visit) {
    const CollectiveMembers& members = graph_.collectives[collective];
    const auto first = static_cast<std::size_t>(members.first);
    for (std::size_t i = first; i < first + static_cast<std::size_t>(members.count); ++i) visit(i);
  }

  void start_flow(std::size_t i, Ticks now) {
    const Task& task = graph_.tasks[i];
    if (task.kind == TaskKind::kCollective) {
      start_collective(i, static_cast<std::size_t>(task.partner), now);
      return;
    }
    const LinkPath& path = *paths_.of(i);
    const Ticks occupancy = duration_of(i);
    start_flow({.task = TaskId(i),
                .route = path.links,
                .limit = bytes_of(task) / to_seconds(occupancy),
                .occupancy = occupancy,
                .shares = path.shares},
               now);
  }
  void start_collective(std::size_t first, std::size_t collective, Ticks now) {
    Ticks duration;
    each_member(collective, [&](std::size_t i) {
      times_.start[i] = now;
      duration = std::max(duration, duration_of(i));
    });
    CollectiveLoad load;
    if (duration > Ticks())
      load = shared_.collective(static_cast<std::int32_t>(collective), duration);
    if (load.route.empty())
      end_collective(collective, now + duration);
    else
      start_flow({.task = TaskId(first),
                  .route = load.route,
                  .limit = load.rate,
                  .occupancy = duration,
                  .shares = load.shares},
                 now);
  }
  void start_flow(const FlowRequest& request, Ticks now) {
    const std::size_t slot = flows_.start(request, now);
    if (slot >= flow_end_.size()) flow_end_.resize(slot + 1);
    flow_end_[slot] = kUnknown;
  }

  void end_flow(const Event& event) {
    const auto slot = static_cast<std::size_t>(event.slot);
    if (flow_end_[slot] != event.time || flows_.task_of(slot).value != event.task) return;  // stale
    flow_end_[slot] = kUnknown;
    flows_.finish(slot);
    const auto i = static_cast<std::size_t>(event.task);
    const Task& task = graph_.tasks[i];
    if (task.kind == TaskKind::kCollective) {
      end_collective(static_cast<std::size_t>(task.partner), event.time);
    } else {
      end_and_go_on(i, event.time);
      run_woken();
    }
  }
  void end_collective(std::size_t collective, Ticks end) {
    each_member(collective, [&](std::size_t i) { end_and_go_on(i, end); });
    run_woken();
  }

  Bytes bytes_of(const Task& send) const { return graph_.works[send.work.index()].transfer.bytes; }
  Ticks duration_of(std::size_t i) const {
    return durations_.empty() ? prices_[graph_.tasks[i].work.index()].duration : durations_[i];
  }

  const TaskGraph& graph_;
  std::span<const WorkPrice> prices_;
  std::span<const Ticks> durations_;
  const SharedLinks& shared_;
  FlowsOnLinks flows_;
  HostThreads hosts_;
  StreamOrder order_;
  MessagePaths paths_;
  SimulatedTimes times_;                       ///< end: kUnknown until it is known
  std::vector<std::int32_t> missing_members_;  ///< by collective
  EventQueue<Event> events_;
  std::vector<std::int32_t> woken_;  ///< streams whose task may be ready
  std::vector<Ticks> flow_end_;      ///< by slot; kUnknown: has ended, or its rate is not known yet
  std::size_t ended_ = 0;
};

}  // namespace

SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        std::span<const Ticks> durations,
                                        const SharedLinks& shared) {
  MW_CHECK(prices.size() == graph.works.size());
  MW_CHECK(durations.empty() || durations.size() == graph.tasks.size());
  MW_CHECK(graph.dependency_begin.size() == graph.tasks.size() + 1);
  return EventLoop(graph, prices, durations, shared).run();
}

SimulatedTimes simulate_with_contention(const TaskGraph& graph, std::span<const WorkPrice> prices,
                                        const LinkNetwork& network) {
  return simulate_with_contention(graph, prices, {}, links_of(graph, network));
}

SharedLinks links_of(const TaskGraph& graph, const LinkNetwork& network) {
  const auto device_of = [&graph](std::int32_t rank) {
    return graph.ranks[static_cast<std::size_t>(rank)].device;
  };
  SharedLinks shared;
  for (const Link& link : network.links()) shared.capacities.push_back(link.capacity);
  shared.message = [&network, device_of](std::int32_t from, std::int32_t to) {
    return LinkPath{network.route(device_of(from), device_of(to)), {}};
  };
  shared.collective = [&network, &graph, device_of](std::int32_t c, Ticks duration) {
    const CollectiveMembers& members = graph.collectives[static_cast<std::size_t>(c)];
    const std::span<const Task> tasks = std::span(graph.tasks)
                                            .subspan(static_cast<std::size_t>(members.first),
                                                     static_cast<std::size_t>(members.count));
    std::vector<DeviceId> devices;
    for (const Task& task : tasks) devices.push_back(device_of(task.rank));
    const Work& work = graph.works[tasks.front().work.index()];
    return collective_load(work.collective, devices, network, duration);
  };
  return shared;
}

}  // namespace meshwright
