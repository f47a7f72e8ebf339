#include "gui/timeline/steps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gui/timeline/row_of_pieces.hpp"

namespace meshwright::gui {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two ranks, three steps that start at 0, 30 and 70 and end at 100.
TimelineTracks three_steps() {
  TimelineTracks tracks =
      rows_of_pieces({{{kF, 0, 0, 10},
                       {kB, 0, 10, 30},
                       {kF, 0, 32, 50},
                       {kB, 0, 50, 70},
                       {kF, 0, 70, 80},
                       {kB, 0, 80, 95}},
                      {{kF, 0, 5, 12}, {kF, 0, 40, 45}, {kB, 0, 45, 68}, {kF, 0, 72, 100}}});
  tracks.iterations = {Nanoseconds(0), Nanoseconds(30), Nanoseconds(70)};
  tracks.arrows = {{0, 6}, {2, 7}, {3, 8}, {4, 8}};
  tracks.memory = {{.rank = 0, .capacity = Bytes(99), .points = {}}};
  for (const std::int64_t time : {0, 20, 40, 60, 80}) {
    MemoryPoint point{.time = Nanoseconds(time), .amounts = {}};
    point.amounts[MemoryClass::kActivations] = Bytes(time);
    tracks.memory[0].points.push_back(point);
  }
  return tracks;
}

TEST(TraceSteps, EndWhereTheNextOneStarts) {
  EXPECT_THAT(steps_of(three_steps()), ElementsAre(TraceStep{Nanoseconds(0), Nanoseconds(30)},
                                                   TraceStep{Nanoseconds(30), Nanoseconds(70)},
                                                   TraceStep{Nanoseconds(70), Nanoseconds(100)}));
  TimelineTracks unmarked = three_steps();
  unmarked.iterations.clear();
  EXPECT_THAT(steps_of(unmarked), ElementsAre(TraceStep{Nanoseconds(0), Nanoseconds(100)}));
  unmarked.iterations = {Nanoseconds(100), Nanoseconds(5000)};  // after everything
  EXPECT_THAT(steps_of(unmarked), ElementsAre(TraceStep{Nanoseconds(0), Nanoseconds(100)}));
  EXPECT_THAT(steps_of(TimelineTracks{}), ElementsAre(TraceStep{}));
}

// Without the first: 40 and 30, of which the upper median is 40.
TEST(TraceSteps, MedianIsWithoutTheWarmUp) {
  EXPECT_EQ(median_step(steps_of(three_steps())), 1U);
  EXPECT_EQ(median_step({TraceStep{Nanoseconds(0), Nanoseconds(3)}}), 0U);
}

// Of the second step the first slice starts at 32, 2 after the step itself.
TEST(TraceSteps, HaveTheSlicesArrowsAndMemoryOfTheirTime) {
  const TimelineTracks all = three_steps();
  const TimelineTracks step = tracks_of_step(all, steps_of(all)[1]);
  EXPECT_THAT(check_timeline_tracks(step), IsEmpty());
  EXPECT_EQ(step.rows, all.rows);
  EXPECT_THAT(step.start_ns, ElementsAre(0, 18, 8, 13));
  EXPECT_THAT(step.duration_ns, ElementsAre(18U, 20U, 5U, 23U));
  EXPECT_THAT(step.kind, ElementsAre(kF, kB, kF, kB));
  EXPECT_THAT(step.arrows, ElementsAre(SliceArrow{0, 2}, SliceArrow{1, 3}));
  EXPECT_EQ(short_name(step, 3), "B0");
  EXPECT_EQ(step.end, Nanoseconds(38));
  EXPECT_THAT(step.iterations, ElementsAre(Nanoseconds(-2)));
  ASSERT_EQ(step.memory.size(), 1U);
  EXPECT_EQ(step.memory[0].capacity, Bytes(99));
  std::vector<std::pair<std::int64_t, std::int64_t>> memory;
  for (const MemoryPoint& point : step.memory[0].points)
    memory.emplace_back(point.time.value, point.amounts[MemoryClass::kActivations].value);
  // What was held at the start, then at 40 and 60.
  EXPECT_THAT(memory, ElementsAre(std::pair(0, 20), std::pair(8, 40), std::pair(28, 60)));
}

TEST(TraceSteps, AllTogetherAreTheTrace) {
  const TimelineTracks all = three_steps();
  std::size_t slices = 0;
  for (const TraceStep& step : steps_of(all)) slices += tracks_of_step(all, step).slice_count();
  EXPECT_EQ(slices, all.slice_count());
}

}  // namespace
}  // namespace meshwright::gui
