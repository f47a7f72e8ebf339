#include "gui/timeline/causes.hpp"

#include <gtest/gtest.h>

#include "core/timeline/timeline_of.hpp"
#include "gui/timeline/statistics.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright::gui {
namespace {

struct Shown {
  GraphBuilder built;
  SimulatedTimes times;
  TimelineTracks tracks;
  TimelineCauses causes;
};

/// F 1000 ns, B 2000 ns; a message takes 100 ns and arrives 50 ns later. Ticks are picoseconds.
Shown one_f_one_b(int devices, int microbatches) {
  const Schedule schedule = schedule_of("1f1b", {.devices = devices, .microbatches = microbatches});
  const StageTimes stage_times =
      uniform_times(devices, Ticks(1'000'000), Ticks(1'200'000), Ticks(800'000));
  Shown shown{.built = pipeline_graph(
                  schedule, stage_times,
                  {.bytes = Bytes(8), .occupancy = Ticks(100'000), .latency = Ticks(50'000)}),
              .times = {},
              .tracks = {},
              .causes = {}};
  shown.times = simulate(shown.built.graph, shown.built.prices);
  shown.tracks = timeline_tracks_of(shown.built.graph, shown.times);
  shown.causes = timeline_causes_of(shown.built.graph, shown.times, shown.tracks);
  return shown;
}

std::vector<std::string> names(const Shown& shown, const std::vector<std::uint32_t>& slices) {
  std::vector<std::string> result;
  for (const std::uint32_t s : slices)
    result.push_back("r" + std::to_string(shown.tracks.rows[shown.tracks.row_of(s)].rank) + " " +
                     short_name(shown.tracks, s));
  return result;
}

std::size_t slice_named(const Shown& shown, const std::string& name) {
  for (std::size_t s = 0; s < shown.tracks.slice_count(); ++s)
    if (full_name(shown.tracks, s) == name) return s;
  ADD_FAILURE() << "no slice " << name;
  return 0;
}

// Two devices, one micro-batch: F on 0, message, F and B on 1, message, B on 0. All of it critical.
TEST(Causes, FollowTheChainOfASingleMicrobatch) {
  const Shown shown = one_f_one_b(2, 1);
  EXPECT_EQ(names(shown, shown.causes.critical_path),
            (std::vector<std::string>{"r0 F0", "r0 send0", "r1 receive0", "r1 F0", "r1 B0",
                                      "r1 send0", "r0 receive0", "r0 B0"}));
  for (const std::uint32_t s : shown.causes.critical_path)
    EXPECT_EQ(shown.causes.slack_ns[s], 0) << short_name(shown.tracks, s);
}

// The bubble before B0 of rank 0 waits for a message of rank 1's B0, which followed F0 at once.
TEST(Causes, FindTheChainBeforeABubble) {
  const Shown shown = one_f_one_b(2, 1);
  const std::size_t backward = slice_named(shown, "r0.compute.s0.B0");
  EXPECT_EQ(names(shown, chain_of_causes(shown.causes, shown.tracks, backward)),
            (std::vector<std::string>{"r0 receive0", "r1 send0", "r1 B0"}));
}

// Rank 0 waits from 1000 to 4300: 4150 - 1000 for rank 1's work, then 150 for the message.
TEST(Causes, ListBubblesLargestFirstWithTheirCauses) {
  const Shown shown = one_f_one_b(2, 1);
  ASSERT_EQ(shown.causes.bubbles.size(), 3U);
  EXPECT_EQ(shown.causes.bubbles[0].from, Nanoseconds(1000));
  EXPECT_EQ(shown.causes.bubbles[0].to, Nanoseconds(4300));
  const std::vector<IdleSpan> wanted{
      {Nanoseconds(1000), Nanoseconds(4150), IdleCause::kDependency},
      {Nanoseconds(4150), Nanoseconds(4300), IdleCause::kCommunication}};
  EXPECT_EQ(shown.causes.idle_of_row[0], wanted);
}

/// The makespan when one task takes `extra` longer.
Ticks makespan_with(const Shown& shown, std::size_t task, Ticks extra) {
  std::vector<Ticks> durations;
  for (std::size_t i = 0; i < shown.built.graph.tasks.size(); ++i)
    durations.push_back(shown.built.prices[shown.built.graph.tasks[i].work.index()].duration);
  durations[task] += extra;
  SimulatedTimes times;
  simulate(shown.built.graph, shown.built.prices, durations, times);
  return makespan(times);
}

// Checked by simulating again: if a compute task takes longer by its slack the step time does not
// change; one nanosecond more and it does.
TEST(Causes, PredictSlackConfirmedByASecondSimulation) {
  for (int devices = 2; devices <= 4; ++devices)
    for (int microbatches = 1; microbatches <= 5; ++microbatches) {
      const Shown shown = one_f_one_b(devices, microbatches);
      const Timeline timeline = timeline_of(shown.built.graph, shown.times);
      for (std::size_t s = 0; s < shown.tracks.slice_count(); ++s) {
        const auto task = static_cast<std::size_t>(timeline.spans[s].name);
        if (!is_pass(shown.tracks.kind[s])) continue;
        const Ticks slack(shown.causes.slack_ns[s] * kTicksPerNanosecond);
        EXPECT_EQ(makespan_with(shown, task, slack), makespan(shown.times));
        EXPECT_GT(makespan_with(shown, task, slack + Ticks(kTicksPerNanosecond)),
                  makespan(shown.times))
            << full_name(shown.tracks, s) << " of " << devices << " x " << microbatches;
      }
    }
}

TEST(Causes, ReachEverySliceFromTheCriticalPathBackwards) {
  const Shown shown = one_f_one_b(4, 8);
  for (std::size_t i = 1; i < shown.causes.critical_path.size(); ++i) {
    const std::uint32_t slice = shown.causes.critical_path[i];
    const auto before = shown.causes.before_of(slice);
    EXPECT_NE(std::find(before.begin(), before.end(), shown.causes.critical_path[i - 1]),
              before.end());
  }
  // Both directions of the lists have the same edges.
  std::size_t edges = 0;
  for (std::size_t s = 0; s < shown.tracks.slice_count(); ++s)
    for (const std::uint32_t before : shown.causes.before_of(s)) {
      const auto after = shown.causes.after_of(before);
      EXPECT_NE(std::find(after.begin(), after.end(), s), after.end());
      ++edges;
    }
  EXPECT_EQ(edges, shown.causes.after.size());
}

TEST(Causes, UseRowsAndArrowsOfATrace) {
  Shown shown = one_f_one_b(2, 1);
  const TimelineCauses causes = timeline_causes_of(shown.tracks);
  const std::size_t backward = slice_named(shown, "r0.compute.s0.B0");
  EXPECT_EQ(names(shown, {causes.binding[backward]}), (std::vector<std::string>{"r0 F0"}));
  EXPECT_EQ(causes.bubbles.size(), shown.causes.bubbles.size());
}

// ---- statistics of an area ----------------------------------------------------------------------

// Rank 0, 500..4200: F 500, idle 3200, of which 50 are communication.
TEST(AreaStatistics, AreExactByKindAndCause) {
  const Shown shown = one_f_one_b(2, 1);
  const AreaStatistics statistics = area_statistics(
      shown.tracks, {.rows = {0}, .from = Nanoseconds(500), .to = Nanoseconds(4200)},
      &shown.causes);
  EXPECT_EQ(statistics.busy[0], Nanoseconds(500));
  EXPECT_EQ(statistics.compute_idle, Nanoseconds(3200));
  EXPECT_EQ(statistics.idle[static_cast<std::size_t>(IdleCause::kDependency)], Nanoseconds(3150));
  EXPECT_EQ(statistics.idle[static_cast<std::size_t>(IdleCause::kCommunication)], Nanoseconds(50));
  EXPECT_EQ(statistics.slices, 1U);
  EXPECT_EQ(to_tsv(shown.tracks, statistics),
            "row\tslices\tF ns\tidle ns\n"
            "r0.compute\t1\t500\t3200\n"
            "total\t1\t500\t3200\n");
  EXPECT_EQ(to_json(shown.tracks, statistics),
            R"({"span_ns":3700,"slices":1,"busy_ns":{"F":500},"rows":[{"row":"r0.compute",)"
            R"("slices":1,"busy_ns":{"F":500},"idle_ns":3200}]})");
  EXPECT_EQ(to_markdown(shown.tracks, statistics),
            "| row | slices | F ns | idle ns |\n"
            "| --- | ---: | ---: | ---: |\n"
            "| r0.compute | 1 | 500 | 3200 |\n"
            "| total | 1 | 500 | 3200 |\n");
}

}  // namespace
}  // namespace meshwright::gui
