#include "gui/timeline/tracks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/timeline/random_timeline.hpp"
#include "tests/gui/timeline/random_tracks.hpp"

namespace meshwright::gui {
namespace {

using ::testing::IsEmpty;

Timeline two_rows() {
  Timeline t;
  t.tracks = {{RankId(3), Stream::kCompute}, {RankId(3), Stream::kSendNext}};
  t.names = {"r3.compute.s1.F7", "r3.compute.s1.B7#2", "r3.send-next.s1.send7",
             "r3.compute.collective.all_reduce"};
  const auto pass = [](std::int64_t start, std::int64_t end, int name, TaskKind kind) {
    return TimelineSpan{.start = Ticks(start),
                        .end = Ticks(end),
                        .track = kind == TaskKind::kSend ? 1 : 0,
                        .name = name,
                        .microbatch = 7,
                        .stage = 1,
                        .kind = kind};
  };
  t.spans = {pass(1'000'999, 3'000'000, 0, TaskKind::kForward),
             pass(3'000'000, 7'999'999, 1, TaskKind::kBackward),
             {.start = Ticks(9'000'000),
              .end = Ticks(9'500'000),
              .track = 0,
              .name = 3,
              .kind = TaskKind::kCollective},
             pass(3'000'000, 3'500'000, 2, TaskKind::kSend)};
  t.flows = {{.from = 3, .to = 1}};
  t.memory = {{.time = Ticks(2'500'000), .rank = 3, .amounts = {}}};
  return t;
}

// Picoseconds 1,000,999 to 3,000,000 are nanoseconds 1000 to 3000; the first start becomes 0.
TEST(TimelineTracks, StoreSpansInNanosecondsSinceTheFirstStart) {
  const TimelineTracks tracks = timeline_tracks_of(two_rows());
  EXPECT_THAT(check_timeline_tracks(tracks), IsEmpty());
  EXPECT_EQ(tracks.base, Nanoseconds(1000));
  EXPECT_EQ(tracks.start_ns, (std::vector<std::int64_t>{0, 2000, 8000, 2000}));
  EXPECT_EQ(tracks.duration_ns, (std::vector<std::uint32_t>{2000, 4999, 500, 500}));
  EXPECT_EQ(tracks.end, Nanoseconds(8500));
  EXPECT_EQ(tracks.arrows, (std::vector<SliceArrow>{{3, 1}}));
  EXPECT_EQ(tracks.memory.at(0).points.at(0).time, Nanoseconds(1500));
  EXPECT_TRUE(tracks.rows[0].is_compute);
  EXPECT_FALSE(tracks.rows[1].is_compute);
}

TEST(TimelineTracks, BuildNamesWithoutStoringThemPerSlice) {
  const TimelineTracks tracks = timeline_tracks_of(two_rows());
  EXPECT_EQ(short_name(tracks, 0), "F7");
  EXPECT_EQ(full_name(tracks, 0), "r3.compute.s1.F7");
  EXPECT_EQ(full_name(tracks, 1), "r3.compute.s1.B7");
  EXPECT_EQ(full_name(tracks, 2), "r3.compute.collective.all_reduce");
  EXPECT_EQ(full_name(tracks, 3), "r3.send-next.s1.send7");
}

TEST(TimelineTracks, AreValidForRandomTimelines) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    const Timeline timeline = random_timeline(seed);
    const TimelineTracks tracks = timeline_tracks_of(timeline);
    EXPECT_THAT(check_timeline_tracks(tracks), IsEmpty());
    ASSERT_EQ(tracks.slice_count(), timeline.spans.size());
    for (std::size_t s = 0; s < tracks.slice_count(); ++s) {
      EXPECT_EQ(tracks.start_of(s) + tracks.base, floor_nanoseconds(timeline.spans[s].start));
      EXPECT_EQ(tracks.end_of(s) + tracks.base, floor_nanoseconds(timeline.spans[s].end));
    }
  }
}

TEST(TimelineTracks, FindSlicesLikeALinearSearch) {
  const TimelineTracks tracks = random_tracks(1, {.rows = 2, .slices_per_row = 60});
  for (std::size_t row = 0; row < 2; ++row)
    for (std::int64_t at = -5; at < tracks.end.value + 5; at += 7) {
      const std::size_t begin = tracks.row_begin[row], end = tracks.row_begin[row + 1];
      std::size_t ending = begin, starting = begin, covering = end;
      while (ending < end && tracks.end_of(ending).value <= at) ++ending;
      while (starting < end && tracks.start_ns[starting] < at) ++starting;
      for (std::size_t s = begin; s < end; ++s)
        if (tracks.start_ns[s] <= at && at < tracks.end_of(s).value) covering = s;
      ASSERT_EQ(tracks.first_ending_after(row, Nanoseconds(at)), ending) << at;
      ASSERT_EQ(tracks.first_starting_from(row, Nanoseconds(at)), starting) << at;
      ASSERT_EQ(tracks.slice_at(row, Nanoseconds(at)), covering) << at;
    }
}

// 2^32 ns are 4.29 s: longer slices, and those equal to the marker value, are stored separately.
TEST(TimelineTracks, StoreSlicesOfAnyDuration) {
  const std::vector<std::int64_t> durations{5, 3'600'000'000'000, 0xffff'fffe, 0xffff'ffff, 7};
  TracksBuilder builder;
  builder.add_row({.label = "stream 1"});
  std::int64_t now = 0;
  for (const std::int64_t duration : durations) {
    builder.add({.start_ns = now, .duration_ns = duration, .label = builder.label("x", -1)});
    now += duration;
  }
  const TimelineTracks tracks = builder.finish();
  EXPECT_THAT(check_timeline_tracks(tracks), IsEmpty());
  for (std::size_t s = 0; s < durations.size(); ++s)
    EXPECT_EQ(tracks.duration_of(s), Nanoseconds(durations[s]));
  EXPECT_EQ(tracks.long_durations.size(), 2U);
  EXPECT_EQ(tracks.end, Nanoseconds(now));
}

// Slices 0..10 and 5..20 on one row: the second is shortened to start at the end of the first.
TEST(TracksBuilder, RepairsOverlaps) {
  TracksBuilder builder;
  builder.add_row({.label = "stream 1"});
  builder.add({.start_ns = 100, .duration_ns = 10, .label = builder.label("a", -1)});
  builder.add({.start_ns = 105, .duration_ns = 15, .label = builder.label("b", -1)});
  builder.add({.start_ns = 106, .duration_ns = 1, .label = builder.label("a", -1)});
  EXPECT_EQ(builder.repaired(), 2U);
  const TimelineTracks tracks = builder.finish();
  EXPECT_EQ(tracks.start_ns, (std::vector<std::int64_t>{0, 10, 20}));
  EXPECT_EQ(tracks.duration_ns, (std::vector<std::uint32_t>{10, 10, 0}));
  EXPECT_EQ(tracks.labels.size(), 2U);
}

TEST(TracksBuilder, DistinguishesLabelsBeyondSixteenBits) {
  TracksBuilder builder;
  builder.add_row({.label = "stream 1"});
  for (int i = 0; i < 70'000; ++i)
    builder.add({.start_ns = i, .duration_ns = 1, .label = builder.label(std::to_string(i), -1)});
  const TimelineTracks tracks = builder.finish();
  for (const std::size_t s : {0, 65'534, 65'535, 65'536, 69'999})
    EXPECT_EQ(tracks.label_of(s).name, std::to_string(s));
}

TEST(TimelineTracks, TakeAtMostTwentyBytesPerSlice) {
  const TimelineTracks tracks = random_tracks(1, {.rows = 8, .slices_per_row = 20'000});
  EXPECT_LE(slice_storage(tracks).value, 20 * static_cast<std::int64_t>(tracks.slice_count()));
}

}  // namespace
}  // namespace meshwright::gui
