#include "simulator/engine/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

const MessageCost kFree{};

/// The same F, B and I + W = B for every stage; odd numbers, so that no sum matches by chance.
constexpr Ticks kForward{1009}, kBackwardInput{1103}, kBackwardWeight{907};
constexpr Ticks kBackward = kBackwardInput + kBackwardWeight;
constexpr Ticks kBoth = kForward + kBackward;

Ticks simulated(std::string_view name, const PipelineSize& size, const MessageCost& message) {
  const Schedule schedule = schedule_of(name, size);
  const StageTimes times =
      uniform_times(size.devices * size.chunks, kForward, kBackwardInput, kBackwardWeight);
  const GraphBuilder built = pipeline_graph(schedule, times, message);
  return makespan(simulate(built.graph, built.prices));
}

// Rank 0 computes a (10) and then b (5); rank 1 computes c (20), which needs a.
TEST(LinearPass, StartsATaskWhenItsStreamAndItsDependenciesAllowIt) {
  GraphBuilder g(2);
  const TaskId a = g.add_task(g.add_compute(TaskKind::kForward, Ticks(10)), {.rank = 0});
  const TaskId b = g.add_task(g.add_compute(TaskKind::kForward, Ticks(5)), {.rank = 0});
  const TaskId c = g.add_task(g.add_compute(TaskKind::kForward, Ticks(20)), {.rank = 1}, {a});
  const TaskId d = g.add_task(g.add_compute(TaskKind::kForward, Ticks(1)), {.rank = 0}, {c});
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.start[a.index()], Ticks(0));
  EXPECT_EQ(times.start[b.index()], Ticks(10));
  EXPECT_EQ(times.start[c.index()], Ticks(10));
  EXPECT_EQ(times.start[d.index()], Ticks(30));
  EXPECT_EQ(makespan(times), Ticks(31));
}

// A message occupies its sender for 7 and arrives 3 later: [10, 17) there, [13, 20) here. The next
// one is ready at 12 but follows the first: [17, 24) and [20, 27).
TEST(LinearPass, DelaysMessagesByTheLatencyAndSendsThemOneAfterAnother) {
  GraphBuilder g(2);
  const WorkId message = g.add_message(Bytes(70), Ticks(7), Ticks(3));
  const TaskId first = g.add_task(g.add_compute(TaskKind::kForward, Ticks(10)), {.rank = 0});
  const TaskId second = g.add_task(g.add_compute(TaskKind::kForward, Ticks(2)), {.rank = 0});
  const auto [s1, r1] = g.add_transfer(message, 0, 1, {first});
  const auto [s2, r2] = g.add_transfer(message, 0, 1, {second});
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.start[s1.index()], Ticks(10));
  EXPECT_EQ(times.end[s1.index()], Ticks(17));
  EXPECT_EQ(times.start[r1.index()], Ticks(13));
  EXPECT_EQ(times.end[r1.index()], Ticks(20));
  EXPECT_EQ(times.start[s2.index()], Ticks(17));
  EXPECT_EQ(times.start[r2.index()], Ticks(20));
  EXPECT_EQ(times.end[r2.index()], Ticks(27));
}

// A long latency before a short one: the second message would arrive at 12 + 1 = 13, but the first
// one arrives at 10 + 50 only.
TEST(LinearPass, LetsNoMessageOvertakeTheOneBefore) {
  GraphBuilder g(2);
  const TaskId r1 = g.add_transfer(g.add_message(Bytes(1), Ticks(10), Ticks(50)), 0, 1).receive;
  const TaskId r2 = g.add_transfer(g.add_message(Bytes(1), Ticks(2), Ticks(1)), 0, 1).receive;
  const SimulatedTimes times = simulate(g.graph, g.prices);
  EXPECT_EQ(times.end[r1.index()], Ticks(60));
  EXPECT_EQ(times.start[r2.index()], Ticks(60));
  EXPECT_EQ(times.end[r2.index()], Ticks(60));
}

// Ranks are ready at 4, 9 and 6; the transfer of 10 begins with the last one.
TEST(LinearPass, BeginsACollectiveWithItsLastMember) {
  GraphBuilder g;
  std::vector<std::vector<TaskId>> after;
  for (const int duration : {4, 9, 6}) {
    const int rank = g.add_rank();
    after.push_back(
        {g.add_task(g.add_compute(TaskKind::kBackward, Ticks(duration)), {.rank = rank})});
  }
  const auto members = g.add_collective(g.add_collective_work(Axis::kData, Ticks(10)),
                                        Stream::kData, {0, 1, 2}, after);
  const SimulatedTimes times = simulate(g.graph, g.prices);
  for (const TaskId member : members) {
    EXPECT_EQ(times.start[member.index()], Ticks(9));
    EXPECT_EQ(times.end[member.index()], Ticks(19));
  }
}

TEST(LinearPass, ReusesTheMemoryOfEarlierTimes) {
  GraphBuilder g(1);
  g.add_task(g.add_compute(TaskKind::kForward, Ticks(10)), {.rank = 0});
  SimulatedTimes times{.start = {Ticks(1), Ticks(2)}, .end = {Ticks(3), Ticks(4)}};
  simulate(g.graph, g.prices, times);
  EXPECT_EQ(times, simulate(g.graph, g.prices));
}

// One micro-batch after another through all stages: m p (F + B).
TEST(ClosedForm, NaiveTakesEveryStageInTurn) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 8; ++m)
      EXPECT_EQ(simulated("naive", {.devices = p, .microbatches = m}, kFree), kBoth * (p * m));
}

// (m + p - 1)(F + B): Narayanan et al., arXiv 2104.04473, section 2.2.1.
TEST(ClosedForm, GpipeAndOneForwardOneBackwardWaitForPMinusOneMicrobatches) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 16; ++m) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const PipelineSize size{.devices = p, .microbatches = m};
      EXPECT_EQ(simulated("gpipe", size, kFree), kBoth * (m + p - 1));
      EXPECT_EQ(simulated("1f1b", size, kFree), kBoth * (m + p - 1));
    }
}

// With v stages on a device, T = v (F + B): m T + (p - 1) T / v, if p divides m (ibid., 2.2.2).
TEST(ClosedForm, InterleavingDividesTheWaitByTheChunks) {
  for (int p = 2; p <= 6; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int groups = 1; groups <= 4; ++groups) {
        SCOPED_TRACE(testing::Message() << "p=" << p << " v=" << v << " m=" << groups * p);
        const PipelineSize size{.devices = p, .microbatches = groups * p, .chunks = v};
        EXPECT_EQ(simulated("interleaved-1f1b", size, kFree),
                  kBoth * (v * groups * p) + kBoth * (p - 1));
      }
}

// GPipe sends p - 1 messages before the last stage starts and p - 1 after it has ended; all others
// hide behind the slowest stage. Unequal stages: sum F + sum B + (m - 1)(max F + max B).
TEST(ClosedForm, GpipePaysForTheWayThereAndBack) {
  const MessageCost message{.occupancy = Ticks(10), .latency = Ticks(7)};
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 8; ++m) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      StageTimes times = uniform_times(p, kForward, kBackwardInput, kBackwardWeight);
      Ticks once, slowest_forward, slowest_backward;
      for (std::size_t s = 0; s < times.forward.size(); ++s) {
        times.forward[s] += Ticks(static_cast<std::int64_t>(s * s % 5) * 100);
        times.backward_input[s] += Ticks(static_cast<std::int64_t>(s * s % 7) * 100);
        const Ticks backward = times.backward_input[s] + times.backward_weight[s];
        once += times.forward[s] + backward;
        slowest_forward = std::max(slowest_forward, times.forward[s]);
        slowest_backward = std::max(slowest_backward, backward);
      }
      const Schedule schedule = schedule_of("gpipe", {.devices = p, .microbatches = m});
      const GraphBuilder built = pipeline_graph(schedule, times, message);
      EXPECT_EQ(makespan(simulate(built.graph, built.prices)),
                once + (slowest_forward + slowest_backward) * (m - 1) + Ticks(17) * (2 * (p - 1)));
    }
}

// In 1F1B a round trip between neighbors is exposed once per p micro-batches:
// (m + p - 1)(F + B) + [2 (p - 1)(m / p + 1) - 2] c for messages of c, if p divides m.
TEST(ClosedForm, OneForwardOneBackwardPaysForRoundTrips) {
  const MessageCost message{.occupancy = Ticks(0), .latency = Ticks(50)};
  for (int p = 2; p <= 8; ++p)
    for (int groups = 1; groups <= 4; ++groups) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << groups * p);
      const int m = groups * p;
      const int messages = 2 * (p - 1) * (groups + 1) - 2;
      EXPECT_EQ(simulated("1f1b", {.devices = p, .microbatches = m}, message),
                kBoth * (m + p - 1) + Ticks(50) * messages);
    }
}

}  // namespace
}  // namespace meshwright
