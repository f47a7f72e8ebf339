#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "simulator/engine/simulate.hpp"
#include "simulator/network/collective_load.hpp"
#include "simulator/network/max_min_sharing.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

constexpr BytesPerSecond kByteATick(1e12);

/// Nodes of `devices` devices that share one network port.
LinkNetwork network_of(int nodes, int devices, BytesPerSecond port) {
  Cluster cluster;
  cluster.devices["device"].name = "device";
  NodeModel& node = cluster.nodes["node"];
  node.name = "node";
  node.device = "device";
  node.device_count = devices;
  node.local.bandwidth = port;
  node.ports = 1;
  node.port_bandwidth = port;
  cluster.groups = {{.node = "node", .count = nodes}};
  return LinkNetwork(cluster, nodes * devices);
}

/// On two nodes of `devices` devices whose ports send one byte per tick.
SimulatedTimes times_on_two_nodes(const GraphBuilder& g, int devices) {
  return simulate_with_contention(g.graph, g.prices, network_of(2, devices, kByteATick));
}

/// Any mix of compute tasks, messages and collectives on a few ranks.
GraphBuilder random_graph(std::mt19937& random, int ranks, int tasks) {
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  GraphBuilder g(ranks);
  for (int t = 0; t < tasks; ++t) {
    std::vector<TaskId> after;
    for (int d = upto(3); d > 0 && !g.graph.tasks.empty(); --d)
      after.push_back(TaskId(upto(static_cast<int>(g.graph.tasks.size()))));
    const int from = upto(ranks), kind = upto(4);
    if (kind <= 1) {
      g.add_task(g.add_compute(TaskKind::kForward, Ticks(upto(100))), {.rank = from}, after);
    } else if (kind == 2) {
      const WorkId message = g.add_message(Bytes(1), Ticks(upto(60)), Ticks(upto(40)));
      g.add_transfer(message, from, (from + 1) % ranks, after);
    } else {
      const WorkId work = g.add_collective_work(Axis::kData, Ticks(upto(80)));
      g.graph.works[work.index()].collective.bytes = Bytes(upto(60));
      g.graph.works[work.index()].collective.kind = static_cast<CollectiveKind>(upto(6));
      g.add_collective(work, Stream::kData, {from, (from + 1) % ranks}, {after, {}});
    }
  }
  return g;
}

TEST(EventLoop, EqualsTheLinearPassWhereLinksHaveRoomForAll) {
  const LinkNetwork network = network_of(3, 2, kByteATick * 1000.0);
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const GraphBuilder g = random_graph(random, 2 + static_cast<int>(seed % 5), 60);
    EXPECT_EQ(simulate_with_contention(g.graph, g.prices, network), simulate(g.graph, g.prices));
  }
}

// Naive pipelines have one message at a time, which has a link to itself at full speed: 1,000 bytes
// in 1,000 ticks over ports of one byte per tick.
TEST(EventLoop, EqualsTheLinearPassForLonelyMessagesAtFullSpeed) {
  for (int p = 2; p <= 6; ++p)
    for (int m = 1; m <= 5; ++m) {
      const GraphBuilder g =
          pipeline_graph(schedule_of("naive", {.devices = p, .microbatches = m}),
                         uniform_times(p, Ticks(700), Ticks(800), Ticks(500)),
                         {.bytes = Bytes(1000), .occupancy = Ticks(1000), .latency = Ticks(30)});
      const LinkNetwork network = network_of(p, 1, kByteATick);
      EXPECT_EQ(simulate_with_contention(g.graph, g.prices, network), simulate(g.graph, g.prices));
    }
}

TEST(EventLoop, EqualsTheLinearPassForEverySmallPipelineWithWideLinks) {
  const LinkNetwork network = network_of(6, 1, kByteATick * 10.0);
  for (const std::string_view name : {"gpipe", "1f1b", "interleaved-1f1b"})
    for (int p = 2; p <= 6; ++p)
      for (int m = p; m <= 3 * p; m += p) {
        SCOPED_TRACE(testing::Message() << name << " p=" << p << " m=" << m);
        const int v = name == "interleaved-1f1b" ? 2 : 1;
        const GraphBuilder g =
            pipeline_graph(schedule_of(name, {.devices = p, .microbatches = m, .chunks = v}),
                           uniform_times(p * v, Ticks(97), Ticks(103), Ticks(51)),
                           {.bytes = Bytes(40), .occupancy = Ticks(40), .latency = Ticks(9)});
        EXPECT_EQ(simulate_with_contention(g.graph, g.prices, network),
                  simulate(g.graph, g.prices));
      }
}

// Two devices of node 0 send 100 bytes each to node 1 through one port of one byte per tick, the
// second 40 ticks later. Alone each would take 100. Shared from 40 on: the first ends at
// 40 + 2 * 60 = 160, the second has 40 left and ends at 200; both arrive 7 later.
TEST(EventLoop, SharesANodesPort) {
  GraphBuilder g(4);
  const WorkId message = g.add_message(Bytes(100), Ticks(100), Ticks(7));
  const TaskId delay = g.add_task(g.add_compute(TaskKind::kForward, Ticks(40)), {.rank = 1});
  const auto [s0, r0] = g.add_transfer(message, 0, 2);
  const auto [s1, r1] = g.add_transfer(message, 1, 3, {delay});
  const SimulatedTimes times = times_on_two_nodes(g, 2);
  EXPECT_EQ(times.end[s0.index()], Ticks(160));
  EXPECT_EQ(times.end[r0.index()], Ticks(167));
  EXPECT_EQ(times.start[s1.index()], Ticks(40));
  EXPECT_EQ(times.end[s1.index()], Ticks(200));
  EXPECT_EQ(times.start[r1.index()], Ticks(47));
  EXPECT_EQ(times.end[r1.index()], Ticks(207));
}

// Sharing can only delay: with narrow links no task ends before its time in the linear pass.
TEST(EventLoop, NeverEndsATaskBeforeTheLinearPass) {
  const LinkNetwork network = network_of(2, 3, kByteATick * 0.02);
  bool delayed = false;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const GraphBuilder g = random_graph(random, 6, 60);
    const SimulatedTimes alone = simulate(g.graph, g.prices);
    const SimulatedTimes shared = simulate_with_contention(g.graph, g.prices, network);
    for (std::size_t i = 0; i < alone.end.size(); ++i) EXPECT_LE(alone.end[i], shared.end[i]);
    delayed |= makespan(shared) > makespan(alone);
  }
  EXPECT_TRUE(delayed);
}

/// Two nodes of one device. An all-gather of `bytes` for `duration`, and, unless it is zero, a
/// message of 1,000 bytes from the first to the second, which alone takes 1,000 ticks.
GraphBuilder gather_and_message(Bytes bytes, Ticks duration, bool with_message) {
  GraphBuilder g(2);
  const WorkId work = g.add_collective_work(Axis::kData, duration);
  g.graph.works[work.index()].collective = {
      .kind = CollectiveKind::kAllGather, .bytes = bytes, .group = {}};
  g.add_collective(work, Stream::kData, {0, 1}, {{}, {}});
  if (!with_message) return g;
  const WorkId message = g.add_message(Bytes(1000), Ticks(1000), Ticks(0));
  g.add_transfer(message, 0, 1);
  return g;
}

// Of 2,000 bytes gathered by two, half goes each way: 1,000 over each port. Priced at 1,000 ticks
// it fills its ports and takes 1,000; so it does if the links would need longer: the price decides.
TEST(EventLoop, LeavesALonelyCollectiveAtItsPrice) {
  const LinkNetwork network = network_of(2, 1, kByteATick);
  for (const std::int64_t duration : {333, 1000, 7777}) {
    const GraphBuilder g = gather_and_message(Bytes(2000), Ticks(duration), false);
    EXPECT_EQ(simulate_with_contention(g.graph, g.prices, network), simulate(g.graph, g.prices));
    EXPECT_EQ(makespan(simulate(g.graph, g.prices)), Ticks(duration));
  }
}

// Both want all of the port from node 0 to node 1: half each, and both end at 2,000; both members
// of the collective end together, although nothing else uses the way back.
TEST(EventLoop, SharesAPortBetweenACollectiveAndAMessage) {
  const GraphBuilder g = gather_and_message(Bytes(2000), Ticks(1000), true);
  const SimulatedTimes times = times_on_two_nodes(g, 1);
  for (const std::size_t task : {0u, 1u, 3u}) EXPECT_EQ(times.end[task], Ticks(2000)) << task;
}

// Priced at 4,000 ticks the collective asks for a quarter of the port and gets it; the message has
// three quarters: 1,000 / 0.75 = 1,333.3, rounded up.
TEST(EventLoop, LeavesToAMessageWhatACollectiveDoesNotAskFor) {
  const GraphBuilder g = gather_and_message(Bytes(2000), Ticks(4000), true);
  const SimulatedTimes times = times_on_two_nodes(g, 1);
  EXPECT_EQ(times.end[0], Ticks(4000));
  EXPECT_EQ(times.end[3], Ticks(1334));
}

// Two groups of a node's two devices each gather across the node's one port: priced alone at 1,000
// ticks, together at half speed: 2,000.
TEST(EventLoop, SharesAPortBetweenTwoCollectives) {
  GraphBuilder g(4);
  const WorkId work = g.add_collective_work(Axis::kData, Ticks(1000));
  g.graph.works[work.index()].collective = {
      .kind = CollectiveKind::kAllGather, .bytes = Bytes(2000), .group = {}};
  g.add_collective(work, Stream::kData, {0, 2}, {{}, {}});
  g.add_collective(work, Stream::kData, {1, 3}, {{}, {}});
  EXPECT_EQ(times_on_two_nodes(g, 2).end, std::vector<Ticks>(4, Ticks(2000)));
}

/// The rules of the engine, written down without regard to speed: at every instant it looks at all
/// tasks, and shares all links among all flows.
class PlainSimulation {
 public:
  PlainSimulation(const GraphBuilder& g, const LinkNetwork& network)
      : g_(g), network_(network), begun_(g.graph.tasks.size()), ended_(g.graph.tasks.size()) {
    times_.start.resize(begun_.size());
    times_.end.assign(begun_.size(), Ticks::max());
  }

  SimulatedTimes run() {
    for (Ticks now;;) {
      while (end_tasks(now) || begin_tasks(now)) {
      }
      share(now);
      Ticks next = Ticks::max();
      for (std::size_t i = 0; i < begun_.size(); ++i)
        if (begun_[i] && !ended_[i]) next = std::min(next, times_.end[i]);
      if (next == Ticks::max()) return times_;
      now = next;
    }
  }

 private:
  struct Flow {
    std::vector<std::size_t> tasks;  // that end together
    std::vector<LinkId> route;
    std::vector<double> shares;
    BytesPerSecond limit;
    double left = 0, speed = 0;
    Ticks since;
  };

  bool end_tasks(Ticks now) {
    bool any = false;
    for (std::size_t i = 0; i < begun_.size(); ++i)
      if (begun_[i] && !ended_[i] && times_.end[i] == now) {
        ended_[i] = 1;
        any = true;
      }
    const auto is_over = [&](const Flow& flow) { return bool(ended_[flow.tasks.front()]); };
    flows_.erase(std::remove_if(flows_.begin(), flows_.end(), is_over), flows_.end());
    return any;
  }

  bool begin_tasks(Ticks now) {
    bool any = false;
    for (std::size_t i = 0; i < begun_.size(); ++i) {
      const Task& task = g_.graph.tasks[i];
      if (begun_[i]) continue;
      std::vector<std::size_t> together{i};
      if (task.kind == TaskKind::kCollective) {
        const CollectiveMembers& m = g_.graph.collectives[static_cast<std::size_t>(task.partner)];
        together.clear();
        for (int t = m.first; t < m.first + m.count; ++t)
          together.push_back(static_cast<std::size_t>(t));
      }
      if (!std::all_of(together.begin(), together.end(),
                       [&](std::size_t t) { return is_ready(t); }))
        continue;
      begin(together, task, now);
      any = true;
    }
    return any;
  }
  bool is_ready(std::size_t i) const {
    const Task& task = g_.graph.tasks[i];
    for (const TaskId d : g_.graph.dependencies_of(TaskId(i)))
      if (!ended_[d.index()]) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (g_.graph.tasks[j].rank == task.rank && g_.graph.tasks[j].stream == task.stream &&
          !ended_[j])
        return false;
    return task.kind != TaskKind::kReceive || ended_[static_cast<std::size_t>(task.partner)];
  }
  /// When a receive could begin if its message took no time.
  Ticks ready_for_message(std::size_t i) const {
    const Task& task = g_.graph.tasks[i];
    Ticks at;
    for (const TaskId d : g_.graph.dependencies_of(TaskId(i)))
      at = std::max(at, times_.end[d.index()]);
    for (std::size_t j = 0; j < i; ++j)
      if (g_.graph.tasks[j].rank == task.rank && g_.graph.tasks[j].stream == task.stream)
        at = std::max(at, times_.end[j]);
    return at;
  }

  void begin(const std::vector<std::size_t>& together, const Task& task, Ticks now) {
    const WorkPrice& price = g_.prices[task.work.index()];
    const Work& work = g_.graph.works[task.work.index()];
    Flow flow{.tasks = together, .route = {}, .shares = {}, .limit = {}, .since = now};
    flow.left = static_cast<double>(price.duration.value);
    for (const std::size_t i : together) {
      begun_[i] = true;
      times_.start[i] = now;
      times_.end[i] = now + price.duration;
    }
    if (task.kind == TaskKind::kReceive) {
      const auto send = static_cast<std::size_t>(task.partner);
      const Ticks latency = g_.prices[g_.graph.tasks[send].work.index()].latency;
      const std::size_t i = together.front();
      times_.start[i] = std::max(times_.start[send] + latency, ready_for_message(i));
      times_.end[i] = std::max(times_.start[i], times_.end[send] + latency);
    } else if (task.kind == TaskKind::kSend && price.duration > Ticks()) {
      for (const Task& other : g_.graph.tasks)
        if (other.kind == TaskKind::kReceive &&
            static_cast<std::size_t>(other.partner) == together.front())
          flow.route = network_.route(DeviceId(task.rank), DeviceId(other.rank));
      flow.shares.assign(flow.route.size(), 1.0);
      flow.limit = work.transfer.bytes / to_seconds(price.duration);
    } else if (task.kind == TaskKind::kCollective && price.duration > Ticks()) {
      std::vector<DeviceId> devices;
      for (const std::size_t i : together) devices.emplace_back(g_.graph.tasks[i].rank);
      CollectiveLoad load = collective_load(work.collective, devices, network_, price.duration);
      flow.route = load.route;
      flow.shares = load.shares;
      flow.limit = load.rate;
    }
    if (!flow.route.empty()) flows_.push_back(flow);
  }

  void share(Ticks now) {
    SharingProblem problem;
    problem.route_begin = {0};
    for (const Link& link : network_.links()) problem.capacities.push_back(link.capacity);
    for (const Flow& flow : flows_) {
      problem.rate_limits.push_back(flow.limit);
      for (const LinkId link : flow.route) problem.routes.push_back(link.value);
      problem.shares.insert(problem.shares.end(), flow.shares.begin(), flow.shares.end());
      problem.route_begin.push_back(static_cast<std::int32_t>(problem.routes.size()));
    }
    const std::vector<BytesPerSecond> rates = max_min_rates(problem);
    for (std::size_t f = 0; f < flows_.size(); ++f) {
      Flow& flow = flows_[f];
      const double speed = rates[f] == flow.limit ? 1 : ratio(rates[f], flow.limit);
      if (speed == flow.speed) continue;
      flow.left -= static_cast<double>((now - flow.since).value) * flow.speed;
      flow.speed = speed;
      flow.since = now;
      const double rest = std::max(0.0, flow.left) / speed * (1 - kRateTolerance);
      for (const std::size_t i : flow.tasks)
        times_.end[i] = now + Ticks(static_cast<std::int64_t>(std::ceil(rest)));
    }
  }

  const GraphBuilder& g_;
  const LinkNetwork& network_;
  std::vector<char> begun_, ended_;
  std::vector<Flow> flows_;
  SimulatedTimes times_;
};

TEST(EventLoop, EqualsAPlainSimulationWhateverTheLinksCarry) {
  for (const double speed : {0.02, 0.3, 1.0, 3.0}) {
    const LinkNetwork network = network_of(2, 3, kByteATick * speed);
    for (unsigned seed = 1; seed <= 100; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", speed " << speed);
      std::mt19937 random(seed);
      const GraphBuilder g = random_graph(random, 6, 80);
      EXPECT_EQ(simulate_with_contention(g.graph, g.prices, network),
                PlainSimulation(g, network).run());
    }
  }
}

}  // namespace
}  // namespace meshwright
