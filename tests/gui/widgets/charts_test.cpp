/// Chart geometry without pixels: axes, contour lines, Pareto fronts, process groups on the map.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "gui/screens/calibration_series.hpp"
#include "gui/screens/run_screen.hpp"
#include "gui/session/sweep_axis.hpp"
#include "gui/widgets/chart_axis.hpp"
#include "gui/widgets/iso_lines.hpp"
#include "gui/widgets/pareto_scatter.hpp"
#include "gui/widgets/topology_map.hpp"
#include "gui/widgets/waterfall.hpp"

namespace meshwright::gui {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

TEST(ChartAxis, HoldsAllValuesAndReturnsThem) {
  for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLogarithmic}) {
    const ChartAxis axis = axis_of({3, 40, 700}, scale);
    for (const double value : {3.0, 40.0, 700.0}) {
      EXPECT_GT(axis.share_of(value), 0);
      EXPECT_LT(axis.share_of(value), 1);
      EXPECT_NEAR(axis.value_at(axis.share_of(value)), value, 1e-9 * value);
    }
  }
  EXPECT_DOUBLE_EQ(axis_of({5, 10}, AxisScale::kLinear, true).low, 0);
}

TEST(ChartAxis, HandlesNoValuesOneValueAndInvalidValues) {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {7}, {0}, {-1, 0}, {std::nan(""), INFINITY, 5}})
    for (const AxisScale scale : {AxisScale::kLinear, AxisScale::kLogarithmic}) {
      const ChartAxis axis = axis_of(values, scale);
      EXPECT_LT(axis.low, axis.high);
      EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high));
      EXPECT_LT(ticks_of(axis, 5).size(), 20U);
    }
}

TEST(ChartAxis, TicksAreRound) {
  ChartAxis axis;
  axis.low = 0;
  axis.high = 10;
  EXPECT_THAT(ticks_of(axis, 5), Pointwise(DoubleNear(1e-12), {0.0, 2.0, 4.0, 6.0, 8.0, 10.0}));
  axis.low = 1e-6;
  axis.high = 1;
  axis.scale = AxisScale::kLogarithmic;
  // Seven powers of ten, thinned out to every second one.
  EXPECT_THAT(ticks_of(axis, 4), Pointwise(DoubleNear(1e-12), {1e-6, 1e-4, 1e-2, 1.0}));
}

// 86 GiB with a tick about every 20 GiB; then 1 KiB to 16 KiB by powers of two.
// Five steps of a run on a wide chart: ticks at 0 to 4 only.
TEST(ChartAxis, CountsInWholeNumbers) {
  ChartAxis axis;
  axis.high = 4;
  axis.is_whole = true;
  EXPECT_THAT(ticks_of(axis, 20), ElementsAre(0, 1, 2, 3, 4));
}

// 0 to 10 over 700 pixels: 11 ticks are 70 pixels apart, 6 are 140, 3 are 350. Labels of 100 pixels
// and a gap of 8 need 108, labels of 200 need 208; if labels are wider than the axis one is left.
TEST(ChartAxis, LimitsTicksToLabelsThatFit) {
  ChartAxis axis;
  axis.high = 10;
  const auto count = [&](double width) {
    return ticks_apart(axis, 700, [&](double) { return width; }).size();
  };
  EXPECT_EQ(count(25), 11u);
  EXPECT_EQ(count(100), 6u);
  EXPECT_EQ(count(200), 3u);
  EXPECT_EQ(count(900), 1u);
}

TEST(ChartAxis, MarksBytesAtRoundBinarySizes) {
  constexpr double kKiB = 1024, kGiB = kKiB * kKiB * kKiB;
  ChartAxis axis;
  axis.is_binary = true;
  axis.high = 86 * kGiB;
  EXPECT_THAT(ticks_of(axis, 5),
              Pointwise(DoubleNear(1e-3), {0.0, 20 * kGiB, 40 * kGiB, 60 * kGiB, 80 * kGiB}));
  axis.scale = AxisScale::kLogarithmic;
  axis.low = 0.9 * kKiB;
  axis.high = 17 * kKiB;
  EXPECT_THAT(ticks_of(axis, 5),
              Pointwise(DoubleNear(1e-9), {kKiB, 2 * kKiB, 4 * kKiB, 8 * kKiB, 16 * kKiB}));
}

TEST(IsoLine, CrossesASlopeHalfway) {
  // Values rise by 1 per column: 0.5 is halfway between the columns, in every row.
  const ValueGrid slope{{0.0, 1.0}, {0.0, 1.0}, {0.0, 1.0}};
  const std::vector<QLineF> line = iso_line(slope, 0.5);
  ASSERT_EQ(line.size(), 2U);
  for (const QLineF& piece : line) {
    EXPECT_DOUBLE_EQ(piece.x1(), 0.5);
    EXPECT_DOUBLE_EQ(piece.x2(), 0.5);
    EXPECT_DOUBLE_EQ(std::abs(piece.dy()), 1);
  }
  EXPECT_TRUE(iso_line(slope, 2).empty());
}

TEST(IsoLine, ResolvesSaddlesByTheirCenter) {
  // Two opposite high corners and a low middle: each high corner is separated on its own.
  const ValueGrid low_middle{{1.0, 0.0}, {0.0, 1.0}};
  for (const QLineF& piece : iso_line(low_middle, 0.6))
    EXPECT_NEAR(piece.length(), 0.4 * std::sqrt(2), 1e-12);
  // At 0.4 the middle is high: each low corner is separated on its own.
  for (const QLineF& piece : iso_line(low_middle, 0.4))
    EXPECT_NEAR(piece.length(), 0.4 * std::sqrt(2), 1e-12);
  EXPECT_EQ(iso_line(low_middle, 0.6).size(), 2U);
}

TEST(IsoLine, SkipsSquaresWithMissingValues) {
  const ValueGrid grid{{0.0, 1.0}, {std::nullopt, 1.0}};
  EXPECT_TRUE(iso_line(grid, 0.5).empty());
}

PlanFigures plan(std::int64_t step, std::int64_t memory) {
  PlanFigures figures;
  figures.step_time = Ticks(step);
  figures.peak_memory = Bytes(memory);
  return figures;
}

TEST(ParetoFront, KeepsNonDominatedPoints) {
  // 0 beats 1 in both; 3 is as fast as 0 but needs more memory.
  EXPECT_THAT(pareto_front({plan(10, 50), plan(12, 60), plan(8, 70), plan(10, 55), plan(20, 20)}),
              ElementsAre(4U, 0U, 2U));
  EXPECT_TRUE(pareto_front({}).empty());
}

TEST(GroupPlace, PartitionsRanksIntoGroupsOfEachAxis) {
  Strategy strategy;
  strategy.degrees = {.data = 3, .pipeline = 2, .context = 2, .tensor = 4};
  for (const auto& [axis, size] : {std::pair(Axis::kTensor, 4), std::pair(Axis::kContext, 2),
                                   std::pair(Axis::kData, 3), std::pair(Axis::kPipeline, 2)}) {
    std::map<int, std::set<int>> members;
    for (int rank = 0; rank < 48; ++rank) {
      const GroupPlace place = group_place(strategy, RankId(rank), axis);
      EXPECT_TRUE(members[place.group].insert(place.member).second);
    }
    EXPECT_EQ(members.size(), static_cast<std::size_t>(48 / size));
    for (const auto& [group, places] : members) {
      EXPECT_EQ(places.size(), static_cast<std::size_t>(size));
      EXPECT_EQ(*places.rbegin(), size - 1);
    }
  }
}

TEST(SweepAxis, IncludesTheValueOfTheScenario) {
  const Scenario base = default_scenario();
  for (int knob = 0; knob < kSweepKnobCount; ++knob) {
    const SweepAxis axis = sweep_axis(static_cast<SweepKnob>(knob), base);
    int now = 0;
    for (const SweepValue& value : axis.values) {
      Scenario changed = base;
      value.put(changed);
      if (!value.is_now) continue;
      ++now;
      EXPECT_EQ(changed, base) << axis.title.toStdString();
    }
    EXPECT_EQ(now, 1) << axis.title.toStdString();
  }
}

// Quartiles of 1 2 3 4 5 are 2 and 4: the fences stand at
// 2 - 3 and 4 + 3. With 9 in place of 5 they are the same.
TEST(Outliers, LieBeyondTukeysFences) {
  EXPECT_TRUE(outliers_of({1, 2, 3, 4, 5}).empty());
  EXPECT_EQ(outliers_of({9, 2, 3, 4, 1}), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(outliers_of({1, 1, 9}).empty());
}

/// A core with 1 GFLOP/s; one of nine matrix products took five times as long.
KernelCurve products() {
  KernelCurve curve{{.kind = KernelKind::kGemm}, {}};
  for (std::int64_t n = 64; curve.points.size() < 9; n += n / 2) {
    const double flops = 2.0 * static_cast<double>(n * n * n);
    curve.points.push_back({.m = n,
                            .n = n,
                            .k = n,
                            .flops = Flops(flops),
                            .memory_traffic = Bytes(12 * n * n),
                            .time = Seconds(flops * 1e-9)});
  }
  curve.points[4].time = curve.points[4].time * 5.0;
  return curve;
}

TEST(CalibrationSeries, ExcludesPointsFarFromTheFit) {
  const CurveSeries all = series_of(products(), false), without = series_of(products(), true);
  ASSERT_EQ(all.points.points.size(), 9u);
  ASSERT_LT(without.points.points.size(), 9u);
  const double slow = products().points[4].time.value;
  EXPECT_TRUE(std::any_of(all.points.points.begin(), all.points.points.end(),
                          [&](const QPointF& point) { return point.y() == slow; }));
  EXPECT_FALSE(std::any_of(without.points.points.begin(), without.points.points.end(),
                           [&](const QPointF& point) { return point.y() == slow; }));
  EXPECT_TRUE(without.note.contains("hidden"));
}

TEST(CalibrationSeries, DrawsTheFittedLineOfACollective) {
  CollectiveCurve curve;
  for (std::int64_t bytes = 1024; bytes <= 1 << 20; bytes *= 2)
    curve.points.push_back({Bytes(bytes), Seconds(1e-5 + static_cast<double>(bytes) * 1e-9)});
  const CurveSeries series = series_of(curve);
  ASSERT_FALSE(series.points.line.empty());
  EXPECT_NEAR(series.points.line.front().y(), 1e-5 + 1024e-9, 1e-12);
  EXPECT_TRUE(series.note.contains("β = 1.00")) << series.note.toStdString();
}

TEST(RunProgress, ParsesProgressLine) {
  EXPECT_EQ(run_progress_from_line("step   3  loss 4.1253  12.504 ms"),
            (RunProgress{3, 4.1253, 12.504}));
  for (const char* other : {"", "step", "12 tasks a step on 4 threads", "step x loss 1 2 ms"})
    EXPECT_EQ(run_progress_from_line(other), std::nullopt);
}

// 100 s and 101 s differ by little, so the axis starts shortly before 100 s; 1 s and 3 s by much.
TEST(Waterfall, SaysWhereItsAxisStartsUnlessAtZero) {
  constexpr Ticks kSecond(kTicksPerSecond);
  Waterfall chart;
  chart.show_parts("before", "after", {{"compute", kSecond * 100, kSecond * 101}});
  EXPECT_TRUE(chart.is_truncated());
  EXPECT_TRUE(chart.accessibleDescription().contains("axis starts at"))
      << chart.accessibleDescription().toStdString();
  chart.show_parts("before", "after", {{"compute", Ticks(1), kSecond * 3}});
  EXPECT_FALSE(chart.is_truncated());
}

}  // namespace
}  // namespace meshwright::gui
