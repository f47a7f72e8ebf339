#include "core/timeline/timeline_steps.hpp"

#include <gtest/gtest.h>

#include "core/formats/pftrace.hpp"

namespace meshwright {
namespace {

/// Two ranks; a on rank 0 takes `length`, b on rank 1 follows, and an arrow joins them.
Timeline step(std::int64_t length) {
  Timeline t;
  t.origin = TimelineOrigin::kMeasured;
  t.tracks = {{RankId(0), Stream::kCompute}, {RankId(1), Stream::kCompute}};
  t.names = {"a", "b"};
  t.spans = {{Ticks(1), Ticks(1 + length), 0, 0}, {Ticks(1 + length), Ticks(3 + length), 1, 1}};
  t.flows = {{0, 1}};
  MemoryAmounts amounts;
  amounts[MemoryClass::kWorking] = Bytes(length);
  t.memory = {{Ticks(), 0, amounts}, {Ticks(2), 1, amounts}};
  t.provenance = {{"program", "test"}};
  return t;
}

// Steps of 4 + 3 = 7 and 5 + 3 = 8 ticks: the second starts at 7, the third at 15.
TEST(JoinSteps, PutsEachBehindTheOneBefore) {
  const std::vector<Timeline> steps{step(4), step(5), step(2)};
  const Timeline joined = join_steps(steps);
  EXPECT_TRUE(check_timeline(joined).empty());
  ASSERT_EQ(joined.spans.size(), 6u);
  EXPECT_EQ(joined.spans[1], (TimelineSpan{Ticks(8), Ticks(13), 0, 0}));
  EXPECT_EQ(joined.spans[5], (TimelineSpan{Ticks(18), Ticks(20), 1, 1}));
  EXPECT_EQ(joined.flows[1], (TimelineFlow{1, 4}));
  EXPECT_EQ(joined.memory[4].time, Ticks(9));
  EXPECT_EQ(joined.provenance.at("step starts"), "0 7 15");
  EXPECT_EQ(joined.provenance.at("program"), "test");
}

TEST(JoinSteps, IsUndoneByStepsOfAlsoThroughAFile) {
  std::vector<Timeline> steps{step(4), step(5), step(2)};
  const Timeline joined = join_steps(steps);
  for (Timeline& s : steps) s.flows.clear();
  EXPECT_EQ(steps_of(joined), steps);
  EXPECT_EQ(steps_of(timeline_from_pftrace(to_pftrace(joined), "x")), steps);
}

// Without recorded starts, a step starts with its first span: 1 tick later.
TEST(StepsOf, GoesByFirstSpansWhereNothingIsSaid) {
  Timeline joined = join_steps(std::vector<Timeline>{step(4), step(5)});
  for (const char* note : {"", "0 x", "7 0", "0 7 15"}) {
    joined.provenance["step starts"] = note;
    const std::vector<Timeline> steps = steps_of(joined);
    ASSERT_EQ(steps.size(), 2u) << note;
    EXPECT_EQ(steps[1].spans[0], (TimelineSpan{Ticks(0), Ticks(5), 0, 0})) << note;
  }
}

TEST(StepsOf, TakesATimelineWithoutRepeatsForOneStep) {
  Timeline one = step(4);
  const std::vector<Timeline> steps = steps_of(one);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(step_time(steps[0]), Ticks(6));  // from its first span, at 1, to 7
  EXPECT_EQ(step_time(one), Ticks(7));
  EXPECT_EQ(steps_of(Timeline{}).size(), 1u);
}

}  // namespace
}  // namespace meshwright
