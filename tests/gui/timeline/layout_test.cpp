#include "gui/timeline/layout.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/golden.hpp"
#include "tests/gui/timeline/random_tracks.hpp"
#include "tests/gui/timeline/row_of_pieces.hpp"
#include "tests/gui/timeline/shown_pipeline.hpp"

namespace meshwright::gui {
namespace {

/// F0 and F1, gap, B0, gap, W0 and W1.
TimelineTracks small_tracks() {
  return row_of_pieces({{kF, 0, 0, 100},
                        {kF, 1, 100, 200},
                        {kB, 0, 300, 500},
                        {kW, 0, 501, 502},
                        {kW, 1, 502, 503}});
}

std::string drawn(const TimelineTracks& tracks, const TimeWindow& window) {
  LaneDrawing drawing;
  draw_lane(tracks, 0, window, nullptr, drawing);
  return to_text(tracks, drawing);
}

// 600 ns over 60 pixels: 10 ns a pixel. W0 and W1 (0.1 pixels each) are folded into pixel 50.
TEST(LaneDrawing, MatchesTheHandDrawnListOfASmallRow) {
  EXPECT_EQ(drawn(small_tracks(), {Nanoseconds(0), Nanoseconds(600), 60}),
            "box F0 0.0..10.0\n"
            "box F1 10.0..20.0\n"
            "box B0 30.0..50.0\n"
            "pixels 0..20: F 1.00\n"
            "pixels 20..30: idle\n"
            "pixels 30..50: B 1.00\n"
            "pixels 50..51: W 0.20\n"
            "pixels 51..60: idle\n"
            "folded 2\n");
}

// 95..345 ns over 10 pixels, 25 ns each: pixel 0 is F0 for 5 ns and F1 for 20, pixel 4 (195..220)
// is F1 for 5 ns, pixel 8 (295..320) is B0 for 20. F0's visible 0.2 pixels belong to a box of 4.
TEST(LaneDrawing, BlendsPixelsOnTheEdgesOfSlices) {
  EXPECT_EQ(drawn(small_tracks(), {Nanoseconds(95), Nanoseconds(345), 10}),
            "box F0 -1.0..0.2\n"
            "box F1 0.2..4.2\n"
            "box B0 8.2..11.0\n"
            "pixels 0..4: F 1.00\n"
            "pixels 4..5: F 0.20\n"
            "pixels 5..8: idle\n"
            "pixels 8..9: B 0.80\n"
            "pixels 9..10: B 1.00\n"
            "folded 0\n");
}

// Four devices, F 1 ms, B and W 1.2 and 0.8 ms; 240 pixels over all of it.
TEST(LaneDrawing, MatchesTheGoldenFilesOfSchedules) {
  constexpr std::pair<const char*, int> kSchedules[]{
      {"1f1b", 1}, {"interleaved-1f1b", 2}, {"zb-h1", 1}, {"zb-v", 2}};
  for (const auto& [schedule, chunks] : kSchedules) {
    const ShownPipeline shown =
        shown_pipeline(schedule, {.devices = 4, .microbatches = 8, .chunks = chunks});
    const TimelineTracks& tracks = *shown.tracks;
    std::string text;
    for (const Lane& lane : arrange_lanes(tracks, {}).lanes) {
      LaneDrawing drawing;
      draw_lane(tracks, static_cast<std::size_t>(lane.row), {Nanoseconds(0), tracks.end, 240},
                shown.causes.get(), drawing);
      text += fmt::format("rank {} at {}, {} high\n{}", lane.rank, lane.top, lane.height,
                          to_text(tracks, drawing));
    }
    expect_golden(text, fmt::format("lanes-{}.txt", schedule));
  }
}

TEST(LaneDrawing, HatchesIdlePartsThatAreWideEnough) {
  const TimelineTracks tracks = small_tracks();
  TimelineCauses causes;
  causes.idle_of_row = {{{Nanoseconds(200), Nanoseconds(260), IdleCause::kDependency},
                         {Nanoseconds(260), Nanoseconds(300), IdleCause::kCommunication},
                         {Nanoseconds(503), Nanoseconds(600), IdleCause::kDrain}}};
  LaneDrawing drawing;
  draw_lane(tracks, 0, {Nanoseconds(210), Nanoseconds(610), 40}, &causes, drawing);
  ASSERT_EQ(drawing.idle.size(), 2U);  // 40 ns are 4 pixels: too narrow
  EXPECT_EQ(drawing.idle[0], (IdleBox{-1.0F, 5.0F, IdleCause::kDependency}));
  EXPECT_EQ(drawing.idle[1].cause, IdleCause::kDrain);
}

// At any zoom, every pixel with its center in a box belongs to that box's slice.
TEST(HitTest, FindsDrawnSlices) {
  const TimelineTracks tracks = random_tracks(11, {.rows = 2, .slices_per_row = 400});
  std::mt19937_64 random(3);
  LaneDrawing drawing;
  int boxes = 0;
  for (int i = 0; i < 100; ++i) {
    const auto span = static_cast<std::int64_t>(500 + random() % 100'000);
    const auto from =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(tracks.end.value));
    const TimeWindow window{Nanoseconds(from), Nanoseconds(from + span), 500};
    draw_lane(tracks, 0, window, nullptr, drawing);
    for (const SliceBox& box : drawing.boxes)
      for (int x = std::max(0, static_cast<int>(std::ceil(box.left)));
           x < static_cast<int>(std::min(500.0F, box.right)); ++x, ++boxes)
        ASSERT_EQ(slice_at_pixel(tracks, 0, window, x), box.slice) << x;
    // A pixel with anything on it hits something.
    const std::size_t channels = drawing.channels.size();
    if (drawing.from_pyramid) continue;
    for (int x = 0; x < 500; ++x) {
      int busy = 0;
      for (std::size_t c = 0; c < channels; ++c)
        busy += drawing.shares[static_cast<std::size_t>(x) * channels + c];
      const bool hit = slice_at_pixel(tracks, 0, window, x).has_value();
      ASSERT_TRUE(hit || busy == 0) << x;
    }
  }
  EXPECT_GT(boxes, 1000);
}

TEST(GapAt, FindsTheGapAtATime) {
  const TimelineTracks tracks = small_tracks();
  EXPECT_FALSE(gap_at(tracks, 0, Nanoseconds(150)));
  const auto gap = gap_at(tracks, 0, Nanoseconds(250));
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->from, Nanoseconds(200));
  EXPECT_EQ(gap->to, Nanoseconds(300));
  EXPECT_EQ(gap->slice_after, 2);
  EXPECT_FALSE(gap_at(tracks, 0, Nanoseconds(503)));  // the end of all
  EXPECT_FALSE(gap_at(tracks, 0, Nanoseconds(-1)));
}

// ---- windows ------------------------------------------------------------------------------------

TEST(TimeWindow, ZoomsAroundTheTimeUnderThePointer) {
  const Nanoseconds end(1'000'000);
  const TimeWindow window{Nanoseconds(0), Nanoseconds(1'000'000), 1000};
  const TimeWindow closer = zoomed(window, Nanoseconds(250'000), 0.5, end);
  EXPECT_EQ(closer.span(), Nanoseconds(500'000));
  EXPECT_DOUBLE_EQ(closer.pixel_of(Nanoseconds(250'000)), 250.0);
}

TEST(TimeWindow, StaysWithinBoundsUnderAnyMoves) {
  std::mt19937 random(9);
  for (const std::int64_t end :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{999}, std::int64_t{4'000'000'000'000}}) {
    TimeWindow window = whole(Nanoseconds(end), 800);
    for (int i = 0; i < 2000; ++i) {
      const double part = static_cast<double>(random() % 1000) / 999;
      const Nanoseconds at = window.time_at(part * 800);
      if (random() % 2 == 0)
        window = zoomed(window, at, random() % 2 == 0 ? 0.3 : 3.1, Nanoseconds(end));
      else
        window = panned(window,
                        Nanoseconds(static_cast<std::int64_t>(
                            (part - 0.5) * 3 * static_cast<double>(window.span().value))),
                        Nanoseconds(end));
      const std::int64_t margin = std::max<std::int64_t>(end / 10, 50);
      ASSERT_GE(window.from.value, -margin - 1);
      ASSERT_LE(window.to.value, end + margin + 1);
      ASSERT_GT(window.span().value, 0);
      ASSERT_EQ(window.width, 800);
    }
  }
}

// ---- lanes --------------------------------------------------------------------------------------

/// Ranks 0..3, two replicas of two stages; compute and one stream each.
TimelineTracks four_ranks() {
  TracksBuilder builder;
  for (int rank = 0; rank < 4; ++rank)
    for (const Stream stream : {Stream::kCompute, Stream::kSendNext}) {
      builder.add_row({.label = std::string(meshwright::name_of(stream)),
                       .rank = rank,
                       .stream = static_cast<std::int32_t>(stream),
                       .pipeline_rank = rank / 2,
                       .replica = rank % 2,
                       .is_compute = stream == Stream::kCompute});
      // Rank 2 is the busiest.
      builder.add({.start_ns = 0, .duration_ns = rank == 2 ? 90 : 10 + rank});
    }
  builder.label("F", 0);
  return builder.finish();
}

std::vector<int> ranks_of(const LaneArrangement& arrangement) {
  std::vector<int> ranks;
  for (const Lane& lane : arrangement.lanes) ranks.push_back(lane.rank);
  return ranks;
}

TEST(Lanes, ShowOneReplicaByDefault) {
  const TimelineTracks tracks = four_ranks();
  LaneOptions options;
  EXPECT_EQ(ranks_of(arrange_lanes(tracks, options)), (std::vector<int>{0, 2}));
  EXPECT_EQ(arrange_lanes(tracks, options).folded_ranks, 2U);
  options.fold_replicas = false;
  EXPECT_EQ(ranks_of(arrange_lanes(tracks, options)), (std::vector<int>{0, 1, 2, 3}));
  options.order = LaneOrder::kStraggler;
  EXPECT_EQ(ranks_of(arrange_lanes(tracks, options)), (std::vector<int>{2, 3, 1, 0}));
}

TEST(Lanes, ShowTheStreamsOfOpenRanksAndPinnedRowsOnTop) {
  const TimelineTracks tracks = four_ranks();
  LaneOptions options;
  options.open_ranks = {2};
  options.pinned = {6, 99};  // 99 does not exist
  const LaneArrangement arrangement = arrange_lanes(tracks, options);
  EXPECT_EQ(ranks_of(arrangement), (std::vector<int>{3, 0, 2, 2}));
  EXPECT_TRUE(arrangement.lanes[0].is_pinned);
  EXPECT_EQ(arrangement.pinned_height, 24 + 2 + 6);
  EXPECT_EQ(arrangement.lanes[1].top, 32);
  EXPECT_EQ(arrangement.lanes[3].height, options.sizes.stream);
}

TEST(Lanes, ShowTheRequestedCounters) {
  TimelineTracks tracks = four_ranks();
  for (int rank = 0; rank < 4; ++rank)
    tracks.memory.push_back({.rank = rank, .capacity = {}, .points = {}});
  const auto kinds = [&](LaneCounters counters) {
    LaneOptions options;
    options.counters = counters;
    std::string text;
    for (const Lane& lane : arrange_lanes(tracks, options).lanes)
      text += "smild"[static_cast<int>(lane.kind)];
    return text;
  };
  EXPECT_EQ(kinds(LaneCounters::kNone), "ss");
  EXPECT_EQ(kinds(LaneCounters::kMemory), "smsm");
  EXPECT_EQ(kinds(LaneCounters::kAll), "smilsmil");  // memory, in flight, links
}

// Pinned lanes do not scroll; other lanes do and disappear under them.
TEST(Lanes, AreFoundAfterScrolling) {
  const TimelineTracks tracks = four_ranks();
  LaneOptions options;
  options.fold_replicas = false;
  options.pinned = {0};
  const LaneArrangement a = arrange_lanes(tracks, options);  // tops: 0, then 32, 58, 84, 110
  ASSERT_EQ(a.lanes[2].top, 58);
  EXPECT_EQ(lane_at(a, 5, 0), 0U);
  EXPECT_EQ(lane_at(a, 5, 40), 0U);
  EXPECT_EQ(lane_at(a, 28, 0), std::nullopt);
  EXPECT_EQ(lane_at(a, 40, 0), 1U);
  EXPECT_EQ(lane_at(a, 40, 26), 2U);
  EXPECT_EQ(lane_at(a, 57, 0), std::nullopt);  // between two
  EXPECT_EQ(lane_at(a, 4000, 0), std::nullopt);
}

TEST(Lanes, PairPredictedAndMeasuredRowsWithADifferenceLane) {
  const TimelineTracks predicted = four_ranks();
  const TimelineTracks measured = four_ranks();
  LaneOptions options;
  options.open_ranks = {0};
  const LaneArrangement a = arrange_comparison(predicted, measured, options);
  std::string order;
  for (const Lane& lane : a.lanes)
    order += lane.kind == LaneKind::kDifference ? 'd' : lane.is_measured ? 'm' : 'p';
  // Rank 0: compute, stream; rank 2: compute; then the measured compute rows of replicas.
  EXPECT_EQ(order, "pmdpmpmdmm");
}

}  // namespace
}  // namespace meshwright::gui
