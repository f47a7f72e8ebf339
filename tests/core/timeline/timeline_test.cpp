#include "core/timeline/timeline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/timeline/random_timeline.hpp"

namespace meshwright {
namespace {
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

Timeline two_spans() {
  Timeline t;
  t.tracks = {{RankId(0), Stream::kCompute}, {RankId(1), Stream::kCompute}};
  t.names = {"a", "b"};
  t.spans = {{Ticks(10), Ticks(20), 0, 0}, {Ticks(20), Ticks(50), 0, 1}};
  return t;
}

TEST(CheckTimeline, SpansMayTouchButNotOverlap) {
  Timeline t = two_spans();
  EXPECT_THAT(check_timeline(t), IsEmpty());
  t.spans[1].start = Ticks(19);
  EXPECT_THAT(check_timeline(t), ElementsAre("span 1 starts at 19 ps, before span 0 on its track "
                                             "ends at 20 ps"));
  t.spans[1].track = 1;
  EXPECT_THAT(check_timeline(t), IsEmpty()) << "tracks run side by side";
}

TEST(CheckTimeline, FindsEveryBrokenReference) {
  Timeline t = two_spans();
  t.spans[0].name = 2;
  t.spans[1].track = 2;
  t.flows = {{0, 2}};
  t.tracks[1] = t.tracks[0];
  EXPECT_THAT(check_timeline(t), ElementsAre(testing::HasSubstr("duplicate track 1"),
                                             "span 0: name 2 is out of range (2 names)",
                                             "span 1: track 2 is out of range (2 tracks)",
                                             "flow 0: span 0 or 2 is out of range (2 spans)"));
}

TEST(CheckTimeline, FindsTimesThatRunBackwards) {
  Timeline t = two_spans();
  t.spans[0].start = Ticks(21);
  t.memory = {{Ticks(5), 0, {}}, {Ticks(4), 0, {}}, {Ticks(0), 1, {}}};
  EXPECT_THAT(check_timeline(t), Contains("span 0 has an invalid range from 21 to 20 ps"));
  EXPECT_THAT(check_timeline(t), Contains("memory sample 1 is not in order"));
}

TEST(CheckTimeline, SaysAtMostTwentyThings) {
  Timeline t = two_spans();
  t.flows.assign(1000, {-1, -1});
  EXPECT_EQ(check_timeline(t).size(), 20u);
}

TEST(CheckTimeline, AcceptsRandomTimelines) {
  for (unsigned seed = 1; seed <= 20; ++seed)
    EXPECT_THAT(check_timeline(random_timeline(seed)), IsEmpty()) << "seed " << seed;
}

TEST(Makespan, RunsFromTheFirstStartToTheLastEnd) {
  Timeline t = two_spans();
  EXPECT_EQ(makespan(t), Ticks(40));
  t.spans.push_back({Ticks(5), Ticks(12), 1, 0});
  EXPECT_EQ(makespan(t), Ticks(45));
  EXPECT_EQ(makespan(Timeline{}), Ticks(0));
}

}  // namespace
}  // namespace meshwright
