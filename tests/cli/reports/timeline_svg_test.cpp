#include "cli/reports/timeline_svg.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::int64_t kMillisecond = 1'000'000'000;  ///< Ticks are picoseconds

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// One rank: a forward pass from 0 to 1 ms and a backward pass from 3 to 4 ms.
Timeline two_passes() {
  Timeline timeline;
  timeline.tracks = {{.rank = RankId(0), .stream = Stream::kCompute},
                     {.rank = RankId(0), .stream = Stream::kData}};
  timeline.names = {"F<0>", "B0", "all-reduce"};
  timeline.spans = {{.start = Ticks(0),
                     .end = Ticks(kMillisecond),
                     .track = 0,
                     .name = 0,
                     .microbatch = 0,
                     .stage = 0,
                     .kind = TaskKind::kForward},
                    {.start = Ticks(3 * kMillisecond),
                     .end = Ticks(4 * kMillisecond),
                     .track = 0,
                     .name = 1,
                     .microbatch = 0,
                     .stage = 0,
                     .kind = TaskKind::kBackward},
                    {.start = Ticks(3 * kMillisecond),
                     .end = Ticks(4 * kMillisecond),
                     .track = 1,
                     .name = 2,
                     .kind = TaskKind::kCollective}};
  return timeline;
}

// The names of ranks take 6 % of the width, and 4 ms the other 94 %: 23.5 % each millisecond.
TEST(TimelineSvg, DrawsComputeTasksInProportionToTheirTimes) {
  const std::string svg = timeline_svg(two_passes());
  EXPECT_THAT(svg, HasSubstr("<rect x=\"6.0000%\" y=\"0\" width=\"23.5000%\""));
  EXPECT_THAT(svg, HasSubstr("<rect x=\"76.5000%\" y=\"0\" width=\"23.5000%\""));
  EXPECT_THAT(svg, HasSubstr("B0: 1 ms from 3 ms to 4 ms"));
  EXPECT_THAT(svg, Not(HasSubstr("all-reduce")));
}

TEST(TimelineSvg, EscapesNames) {
  EXPECT_THAT(timeline_svg(two_passes()), HasSubstr("F&lt;0&gt;"));
}

TEST(TimelineSvg, SaysThatRanksAreMissing) {
  Timeline timeline = two_passes();
  timeline.tracks.clear();
  timeline.spans.clear();
  for (int r = 0; r < kMostSvgRows + 3; ++r)
    timeline.tracks.push_back({.rank = RankId(r), .stream = Stream::kCompute});
  const std::string svg = timeline_svg(timeline);
  EXPECT_EQ(count(svg, ">rank "), static_cast<std::size_t>(kMostSvgRows));
  EXPECT_THAT(svg, HasSubstr("; 32 of 35 ranks shown"));
}

TEST(TimelineSvg, StaysSmallWithAHundredThousandTasks) {
  Timeline timeline = two_passes();
  timeline.spans.clear();
  constexpr int kTasks = 100'000;
  for (int i = 0; i < kTasks; ++i)
    timeline.spans.push_back({.start = Ticks(i * kMillisecond),
                              .end = Ticks((i + 1) * kMillisecond),
                              .track = 0,
                              .name = i % 2,
                              .microbatch = i / 2,
                              .stage = 0,
                              .kind = i % 2 == 0 ? TaskKind::kForward : TaskKind::kBackward});
  const std::string svg = timeline_svg(timeline);
  EXPECT_LT(svg.size(), std::size_t{3} << 20);
  EXPECT_THAT(svg, HasSubstr("tasks from F&lt;0&gt;"));
}

TEST(TimelineSvg, OfNothingIsEmpty) { EXPECT_EQ(count(timeline_svg({}), "<g>"), 0u); }

}  // namespace
}  // namespace meshwright
