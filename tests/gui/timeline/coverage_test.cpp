#include "gui/timeline/coverage.hpp"

#include <gtest/gtest.h>

#include "gui/timeline/layout.hpp"
#include "tests/gui/timeline/random_tracks.hpp"

namespace meshwright::gui {
namespace {

/// One slice at a time.
BusyTimes busy_times_slowly(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                            Nanoseconds to) {
  BusyTimes times{};
  for (std::size_t s = tracks.row_begin[row]; s < tracks.row_begin[row + 1]; ++s) {
    const Nanoseconds inside = std::min(to, tracks.end_of(s)) - std::max(from, tracks.start_of(s));
    if (inside > Nanoseconds(0)) times[static_cast<std::size_t>(tracks.kind[s])] += inside;
  }
  return times;
}

TEST(BusyTimes, AreExactForAnySpan) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 8; ++seed) {
    const TimelineTracks tracks = random_tracks(seed, {.rows = 2, .slices_per_row = 300});
    const auto end = static_cast<unsigned>(tracks.end.value + 100);
    for (int i = 0; i < 300; ++i) {
      const Nanoseconds a(static_cast<std::int64_t>(random() % end) - 50);
      const Nanoseconds b(static_cast<std::int64_t>(random() % end) - 50);
      for (std::size_t row = 0; row < 2; ++row)
        ASSERT_EQ(busy_times(tracks, row, a, b), busy_times_slowly(tracks, row, a, b))
            << seed << " row " << row << " " << a.value << ".." << b.value;
    }
  }
}

// At every level the busy fractions of a row add up to its durations within half a unit of a bin
// per kind, because the rounding error is carried.
TEST(Coverage, AddsUpToTheDurationsAtEveryLevel) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const TimelineTracks tracks = random_tracks(seed, {.rows = 2, .slices_per_row = 2000});
    for (std::size_t row = 0; row < tracks.rows.size(); ++row) {
      const RowCoverage& coverage = tracks.coverage.rows[row];
      const BusyTimes exact = busy_times_slowly(tracks, row, Nanoseconds(0), tracks.end);
      ASSERT_GT(coverage.levels.size(), 5U);
      auto bin = static_cast<double>(coverage.base_bin.value);
      for (const CoverageLevel& level : coverage.levels) {
        for (std::size_t c = 0; c < coverage.channels.size(); ++c) {
          double sum = 0;
          for (std::size_t b = 0; b < level.bins; ++b)
            sum += level.shares[b * coverage.channels.size() + c] / 65535.0 * bin;
          const auto wanted =
              static_cast<double>(exact[static_cast<std::size_t>(coverage.channels[c])].value);
          // A full bin (65535) carries its excess as well.
          EXPECT_NEAR(sum, wanted, 0.51 / 65535.0 * bin + 1e-6 * wanted)
              << "seed " << seed << " row " << row << " bin " << bin;
        }
        bin *= 2;
      }
      EXPECT_EQ(coverage.levels.back().bins, 1U);
    }
  }
}

/// Busy nanoseconds of all pixels.
double busy_of_pixels(const LaneDrawing& drawing, const TimeWindow& window) {
  double sum = 0;
  for (const std::uint16_t share : drawing.shares) sum += share / 65535.0;
  return sum * window.nanoseconds_per_pixel();
}

// At every zoom the pixels add up to the busy time of the visible range.
TEST(Coverage, ConservesBusyTimeAcrossZoomLevels) {
  const TimelineTracks tracks = random_tracks(3, {.rows = 1, .slices_per_row = 20'000});
  const auto exact =
      static_cast<double>(total(busy_times(tracks, 0, Nanoseconds(0), tracks.end)).value);
  LaneDrawing drawing;
  int from_pyramid = 0;
  for (const int width : {16, 100, 333, 1000, 1920, 4000, 20'000}) {
    const TimeWindow all{Nanoseconds(-1000), tracks.end + Nanoseconds(1000), width};
    draw_lane(tracks, 0, all, nullptr, drawing);
    from_pyramid += drawing.from_pyramid;
    // u16 shares are rounded to nearest; errors average out over pixels.
    EXPECT_NEAR(busy_of_pixels(drawing, all) / exact, 1.0, 1e-4) << width;
  }
  EXPECT_GT(from_pyramid, 0);
  EXPECT_LT(from_pyramid, 7);
}

// For any window the pixels agree with the exact sums, except for bins that straddle its edges.
TEST(Coverage, MatchesExactSumsInEveryWindow) {
  const TimelineTracks tracks = random_tracks(4, {.rows = 1, .slices_per_row = 20'000});
  std::mt19937_64 random(5);
  LaneDrawing drawing;
  for (int i = 0; i < 200; ++i) {
    const auto span =
        static_cast<std::int64_t>(1000.0 * std::pow(2.0, static_cast<double>(random() % 140) / 10));
    const auto from =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(tracks.end.value));
    const TimeWindow window{Nanoseconds(from), Nanoseconds(from + span), 640};
    draw_lane(tracks, 0, window, nullptr, drawing);
    const double busy = busy_of_pixels(drawing, window);
    const auto exact =
        static_cast<double>(total(busy_times(tracks, 0, window.from, window.to)).value);
    const double smear = drawing.from_pyramid ? 2 * window.nanoseconds_per_pixel() : 0;
    EXPECT_NEAR(busy, exact, smear + 640 * window.nanoseconds_per_pixel() * 4 / 65535.0)
        << from << " + " << span;
  }
}

TEST(Coverage, OfARowWithoutSlicesIsEmpty) {
  TracksBuilder builder;
  builder.add_row({.label = "a"});
  builder.add_row({.label = "b"});
  builder.add({.start_ns = 0, .duration_ns = 10, .label = builder.label("x", -1)});
  const TimelineTracks tracks = builder.finish();
  EXPECT_TRUE(tracks.coverage.rows[0].channels.empty());
  EXPECT_EQ(total(busy_times(tracks, 0, Nanoseconds(0), Nanoseconds(10))), Nanoseconds(0));
  LaneDrawing drawing;
  draw_lane(tracks, 0, whole(tracks.end, 100), nullptr, drawing);
  EXPECT_TRUE(drawing.boxes.empty());
  EXPECT_TRUE(drawing.shares.empty());
}

}  // namespace
}  // namespace meshwright::gui
