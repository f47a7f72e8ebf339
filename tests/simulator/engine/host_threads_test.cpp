#include "simulator/engine/host_threads.hpp"

#include <gtest/gtest.h>

#include "core/cluster/link_network.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/simulator/graph_builder.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

/// A pass that the host launches in `host`, and that ends `since_launch` after the host began.
WorkId launched_pass(GraphBuilder& g, Ticks duration, Ticks host, Ticks since_launch,
                     bool launch_waits = false) {
  const WorkId work = g.add_compute(TaskKind::kForward, duration);
  WorkPrice& price = g.prices[work.index()];
  price.host = host;
  price.since_launch = since_launch;
  price.launch_waits = launch_waits;
  return work;
}

Evaluation evaluated(const GraphBuilder& g) {
  JobFacts job;
  job.job_ranks = static_cast<std::int64_t>(g.graph.ranks.size());
  return evaluate(g.graph, g.prices, simulate(g.graph, g.prices), job);
}

// Three passes of 10 on the device, launched in 30 each; the last kernel takes 2: the host is done
// at 90, the device at 92.
TEST(HostThreads, BoundPassesOfSmallKernels) {
  GraphBuilder g(1);
  const WorkId pass = launched_pass(g, Ticks(10), Ticks(30), Ticks(32));
  for (int i = 0; i < 3; ++i) g.add_task(pass, {.rank = 0, .microbatch = i});
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.end, (std::vector<Ticks>{Ticks(32), Ticks(62), Ticks(92)}));
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.ranks[0].launch, Ticks(92 - 30));
  EXPECT_EQ(total(e.ranks[0]), Ticks(92));
  EXPECT_DOUBLE_EQ(step_shares(e).launch, 62.0 / 92);
}

// A long pass lets the host run ahead: the launch-bound pass after it (30 of host time, 10 on the
// device) starts with its kernels in the queue and is not delayed.
TEST(HostThreads, RunAheadOfTheDevice) {
  GraphBuilder g(1);
  g.add_task(launched_pass(g, Ticks(100), Ticks(5), Ticks(101)), {.rank = 0});
  g.add_task(launched_pass(g, Ticks(10), Ticks(30), Ticks(32)), {.rank = 0, .microbatch = 1});
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.end, (std::vector<Ticks>{Ticks(101), Ticks(111)}));
}

// A pass of 100, launched in 5. In the next one (8 on the device) the host waits for the device: it
// ends 3 later for its launches, and the host is done 8 after its start. The third one, launched in
// 30, cannot be in the queue by then: 101 + 8 + 32.
TEST(HostThreads, FallBackBehindADeviceThatTheyWaitFor) {
  GraphBuilder g(1);
  g.add_task(launched_pass(g, Ticks(100), Ticks(5), Ticks(101)), {.rank = 0});
  const WorkId waiting = launched_pass(g, Ticks(8), Ticks(15), Ticks(18));
  g.prices[waiting.index()].host_since_start = Ticks(8);
  g.prices[waiting.index()].stalls = Ticks(3);
  g.add_task(waiting, {.rank = 0, .microbatch = 1});
  g.add_task(launched_pass(g, Ticks(10), Ticks(30), Ticks(32)), {.rank = 0, .microbatch = 2});
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.end, (std::vector<Ticks>{Ticks(101), Ticks(112), Ticks(141)}));
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.ranks[0].launch, Ticks(141 - 118));
  EXPECT_EQ(total(e.ranks[0]), Ticks(141));
}

// A message arrives at 50. If the host waits for it, launching starts then: 50 + 32; else the
// kernels are in the queue: 50 + 10.
TEST(HostThreads, WaitForMessagesOnlyIfTheTrainerDoes) {
  for (const bool waits : {false, true}) {
    GraphBuilder g(2);
    const TaskId received =
        g.add_transfer(g.add_message(Bytes(1), Ticks(50), Ticks(0)), 0, 1).receive;
    const TaskId pass = g.add_task(launched_pass(g, Ticks(10), Ticks(30), Ticks(32), waits),
                                   {.rank = 1}, {received});
    const SimulatedTimes times = simulate(g.graph, g.prices);
    EXPECT_EQ(times.start[pass.index()], Ticks(50));
    EXPECT_EQ(times.end[pass.index()], Ticks(waits ? 82 : 60));
  }
}

TEST(HostThreads, GiveTheSameTimesWithContention) {
  GraphBuilder g(1);
  const WorkId pass = launched_pass(g, Ticks(10), Ticks(30), Ticks(32));
  for (int i = 0; i < 3; ++i) g.add_task(pass, {.rank = 0, .microbatch = i});
  const SimulatedTimes shared = simulate_with_contention(
      g.graph, g.prices, LinkNetwork(testing::cluster_of(testing::dgx_a100(), 1), 1));
  EXPECT_EQ(shared.end, simulate(g.graph, g.prices).end);
}

}  // namespace
}  // namespace meshwright
