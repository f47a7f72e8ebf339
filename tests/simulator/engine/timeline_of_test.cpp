#include <gtest/gtest.h>

#include "simulator/engine/simulate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

MemoryAmounts activations(int bytes) {
  MemoryAmounts amounts;
  amounts[MemoryClass::kActivations] = Bytes(bytes);
  return amounts;
}

/// Two stages, one micro-batch, F = 10, B = 20, messages with occupancy 4 and latency 3.
///   rank 0: F [0,10)  sends [10,14)                      B [54,74)
///   rank 1:           receives [13,17)  F [17,27)  B [27,47)  sends [47,51), arrives [50,54)
GraphBuilder two_stages() {
  return pipeline_graph(schedule_of("1f1b", {.devices = 2, .microbatches = 1}),
                        uniform_times(2, Ticks(10), Ticks(10), Ticks(10)),
                        {.occupancy = Ticks(4), .latency = Ticks(3)});
}

TEST(TimelineOf, PutsEveryStreamOnATrackOfItsOwn) {
  const GraphBuilder g = two_stages();
  const SimulatedTimes times = simulate(g.graph, g.prices);
  const Timeline timeline = timeline_of(g.graph, times);
  EXPECT_EQ(check_timeline(timeline), std::vector<std::string>{});
  EXPECT_EQ(timeline.tracks, (std::vector<TimelineTrack>{{RankId(0), Stream::kCompute},
                                                         {RankId(0), Stream::kSendNext},
                                                         {RankId(0), Stream::kReceiveNext},
                                                         {RankId(1), Stream::kCompute},
                                                         {RankId(1), Stream::kSendPrevious},
                                                         {RankId(1), Stream::kReceivePrevious}}));
  EXPECT_EQ(makespan(timeline), Ticks(74));
  ASSERT_EQ(timeline.spans.size(), 8u);
  EXPECT_EQ(timeline.spans[1].start, Ticks(54));  // rank 0, backward
  EXPECT_EQ(timeline.spans[1].kind, TaskKind::kBackward);
  const TextTable names = stable_names(g.graph);
  for (const TimelineSpan& span : timeline.spans) {
    const auto task = static_cast<std::size_t>(span.name);
    EXPECT_EQ(timeline.names[task], names[task]);
    EXPECT_EQ(span.start, times.start[task]);
  }
}

TEST(TimelineOf, DrawsMessagesFromSendToReceive) {
  const GraphBuilder g = two_stages();
  const Timeline timeline = timeline_of(g.graph, simulate(g.graph, g.prices));
  ASSERT_EQ(timeline.flows.size(), 2u);
  const auto from = timeline.spans[static_cast<std::size_t>(timeline.flows[0].from)];
  const auto to = timeline.spans[static_cast<std::size_t>(timeline.flows[0].to)];
  EXPECT_EQ(from.kind, TaskKind::kSend);
  EXPECT_EQ(from.start, Ticks(10));
  EXPECT_EQ(to.kind, TaskKind::kReceive);
  EXPECT_EQ(to.start, Ticks(13));
}

// Rank 0 holds 100; its forward saves 8 and needs 2 while it runs, its backward needs 4 while it
// runs and frees the 8: 110 from 0, 108 from 10, 112 from 54, 100 from 74. The level before the
// forward, which starts at 0, has no duration.
TEST(TimelineOf, SamplesMemoryWhereItChanges) {
  GraphBuilder g = two_stages();
  g.graph.ranks[0].resident = activations(100);
  for (const Task& task : g.graph.tasks) {
    if (task.rank != 0) continue;
    Work& work = g.graph.works[task.work.index()];
    if (task.kind == TaskKind::kForward) {
      work.acquired = activations(8);
      work.transient = activations(2);
    }
    if (task.kind == TaskKind::kBackward) {
      work.released = activations(8);
      work.transient = activations(4);
    }
  }
  const Timeline timeline = timeline_of(g.graph, simulate(g.graph, g.prices));
  EXPECT_EQ(timeline.memory, (std::vector<MemorySample>{{Ticks(0), 0, activations(110)},
                                                        {Ticks(10), 0, activations(108)},
                                                        {Ticks(54), 0, activations(112)},
                                                        {Ticks(74), 0, activations(100)},
                                                        {Ticks(0), 1, activations(0)}}));
}

}  // namespace
}  // namespace meshwright
