#include "core/cost/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/complaints.hpp"
#include "tests/replaced.hpp"

namespace meshwright {
namespace {

CollectiveCurve curve_of(std::vector<CurvePoint> points) {
  return {.kind = CollectiveKind::kAllReduce,
          .ranks = 8,
          .nodes = 1,
          .groups_per_node = 1,
          .points = std::move(points),
          .source = "by hand"};
}

std::vector<std::string> hints_of(const Calibration& calibration) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : check_calibration(calibration, "x#")) texts.push_back(d.where);
  return texts;
}

// From 4 bytes in 1 s to 64 bytes in 16 s: slope 1 on logarithms, so 16 bytes take 4 s. From 64 to
// 256 bytes the time doubles, slope 1/2: 128 bytes take 16 sqrt(2) s.
TEST(CollectiveCurve, IsStraightOnLogarithms) {
  const CollectiveCurve curve =
      curve_of({{Bytes(4), Seconds(1)}, {Bytes(64), Seconds(16)}, {Bytes(256), Seconds(32)}});
  EXPECT_NEAR(time_on_curve(curve, Bytes(16)).value, 4, 1e-12);
  EXPECT_NEAR(time_on_curve(curve, Bytes(128)).value, 16 * std::sqrt(2.0), 1e-12);
}

TEST(KernelPoint, HasAKernelWithItsSizes) {
  const KernelFamily family{.kind = KernelKind::kGemm, .dtype = Dtype::kBf16};
  const KernelPoint point{
      .batch = 2, .m = 3, .n = 4, .k = 5, .flops = Flops(240), .memory_traffic = Bytes(94)};
  EXPECT_EQ(family_of(kernel_of(family, point)), family);
  EXPECT_EQ(point_of(kernel_of(family, point)), point);
}

// On the line 20 us + S / 200 GB/s: found again. A point twice as slow as the other two, which are
// on S / 1 B/s: u = 1, 1/2, 1/8; v = 1, 1, 1/2 (sizes 1, 2, 4; times 1, 2, 8).
//   uu = 81/64, uv = 25/16, vv = 9/4; sums 13/8 and 5/2; determinant 81/64 9/4 - 625/256 = 104/256
//   alpha = (13/8 9/4 - 5/2 25/16) / det = (-1/4) / det < 0, so 0; 1/beta = (5/2) / (9/4) = 10/9
TEST(AlphaBeta, IsTheLineThatMissesByTheLeastShare) {
  std::vector<CurvePoint> points;
  for (std::int64_t b = 1024; b <= std::int64_t{1} << 30; b *= 4)
    points.push_back({Bytes(b), Seconds(20e-6 + static_cast<double>(b) / 200e9)});
  const auto exact = alpha_beta_of(curve_of(points));
  ASSERT_TRUE(exact);
  EXPECT_NEAR(exact->alpha.value, 20e-6, 1e-12);
  EXPECT_NEAR(exact->beta.value, 200e9, 1e3);
  const auto bent = alpha_beta_of(
      curve_of({{Bytes(1), Seconds(1)}, {Bytes(2), Seconds(2)}, {Bytes(4), Seconds(8)}}));
  ASSERT_TRUE(bent);
  EXPECT_EQ(bent->alpha.value, 0);
  EXPECT_NEAR(bent->beta.value, 0.9, 1e-12);
  EXPECT_FALSE(alpha_beta_of(curve_of({{Bytes(4), Seconds(1)}})));
  EXPECT_FALSE(alpha_beta_of(curve_of({})));
}

TEST(CollectiveCurve, PassesThroughItsPointsExactly) {
  const CollectiveCurve curve = curve_of({{Bytes(3), Seconds(0.1)}, {Bytes(7), Seconds(0.3)}});
  EXPECT_EQ(time_on_curve(curve, Bytes(3)).value, 0.1);
  EXPECT_EQ(time_on_curve(curve, Bytes(7)).value, 0.3);
}

TEST(CollectiveCurve, NeverFallsWhereItsPointsDoNot) {
  const CollectiveCurve curve = curve_of({{Bytes(100), Seconds(1e-5)},
                                          {Bytes(200), Seconds(1e-5)},
                                          {Bytes(1000), Seconds(3e-5)},
                                          {Bytes(1100), Seconds(9e-5)}});
  for (std::int64_t b = 101; b <= 1100; ++b)
    EXPECT_GE(time_on_curve(curve, Bytes(b)), time_on_curve(curve, Bytes(b - 1))) << b;
}

// The bound derived in the header: alpha + S / beta sampled at powers of two, interpolated.
TEST(CollectiveCurve, MeetsAnAlphaBetaLineWithin1Point51Percent) {
  std::vector<CurvePoint> points;
  const auto line = [](std::int64_t bytes) { return 20e-6 + static_cast<double>(bytes) / 200e9; };
  for (std::int64_t b = 1024; b <= std::int64_t{1} << 32; b *= 2)
    points.push_back({Bytes(b), Seconds(line(b))});
  const CollectiveCurve curve = curve_of(points);
  double worst = 0;
  for (std::int64_t b = 1024; b <= std::int64_t{1} << 32; b += b / 37)
    worst = std::max(worst, time_on_curve(curve, Bytes(b)).value / line(b) - 1);
  EXPECT_LT(worst, 0.01506);
  EXPECT_GT(worst, 0.014);
}

// 1, 4, 2: the last two fall, and get sqrt(4 * 2) each, 2.83.
TEST(LevelPoints, JoinsNeighborsThatFall) {
  const LevelledPoints levelled =
      level_points({{Bytes(1), Seconds(1)}, {Bytes(2), Seconds(4)}, {Bytes(3), Seconds(2)}});
  ASSERT_EQ(levelled.points.size(), 3u);
  EXPECT_EQ(levelled.points[0].time.value, 1);
  EXPECT_NEAR(levelled.points[1].time.value, std::sqrt(8.0), 1e-12);
  EXPECT_EQ(levelled.points[1].time, levelled.points[2].time);
  EXPECT_EQ(levelled.moved, 2);
  EXPECT_NEAR(levelled.furthest, std::sqrt(8.0) / 2 - 1, 1e-12);
}

// 8, 4, 2, 16 → the first three become one block of 4 = (8 * 4 * 2)^(1/3); equal sizes are
// averaged before: 16 is the mean of 15 and 17.
TEST(LevelPoints, SortsAveragesAndPoolsUntilNothingFalls) {
  const LevelledPoints levelled = level_points({{Bytes(40), Seconds(15)},
                                                {Bytes(10), Seconds(8)},
                                                {Bytes(30), Seconds(2)},
                                                {Bytes(20), Seconds(4)},
                                                {Bytes(40), Seconds(17)}});
  ASSERT_EQ(levelled.points.size(), 4u);
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(levelled.points[static_cast<std::size_t>(i)].time.value, 4, 1e-12);
  EXPECT_EQ(levelled.points[3].time.value, 16);
}

TEST(Calibration, NamesEveryCurveThatCannotBe) {
  Calibration calibration;
  const std::vector<CurvePoint> sound{{Bytes(1), Seconds(1)}};
  CollectiveCurve one_rank = curve_of(sound),
                  falling = curve_of({{Bytes(1), Seconds(2)}, {Bytes(2), Seconds(1)}});
  one_rank.ranks = 1;
  falling.ranks = 4;
  calibration.collectives = {curve_of(sound), one_rank, falling, curve_of({}), curve_of(sound)};
  calibration.collectives[3].ranks = 2;
  EXPECT_EQ(hints_of(calibration),
            (std::vector<std::string>{"x#/collectives/1", "x#/collectives/2/points/1",
                                      "x#/collectives/3/points", "x#/collectives/4"}));
}

TEST(CalibrationFile, ComesBackAsItWasWritten) {
  Calibration calibration;
  calibration.provenance = {{"device", "H100"}, {"file", "all_reduce.txt"}};
  calibration.collectives = {
      curve_of({{Bytes(1024), Seconds(0.0000125)}, {Bytes(2048), Seconds(0.000014)}})};
  EXPECT_EQ(calibration_from_json(to_json(calibration), "again"), calibration);
}

/// A machine, and two families of kernels.
Calibration measured_machine() {
  Calibration calibration;
  calibration.provenance = {{"date", "2026-11-21"}};
  calibration.machine = MeasuredMachine{.processor = "AMD EPYC",
                                        .cores = 2,
                                        .memory = Bytes(1 << 30),
                                        .message_latency = Seconds(0.00002),
                                        .message_bandwidth = BytesPerSecond(4e9),
                                        .memory_bandwidth = BytesPerSecond(1e10),
                                        .peak = {{Dtype::kFp32, FlopsPerSecond(6e10)}}};
  KernelCurve product{.family = {.kind = KernelKind::kGemm, .phase = Phase::kBackwardWeight},
                      .points = {}};
  product.points.push_back({.m = 2, .n = 3, .k = 4, .flops = Flops(48), .time = Seconds(0.000002)});
  product.points.push_back({.m = 4, .n = 3, .k = 4, .flops = Flops(96), .time = Seconds(0.000003)});
  KernelCurve gelu{.family = {.routine = Routine::kGelu, .dtype = Dtype::kBf16}, .points = {}};
  gelu.points.push_back(
      {.memory_traffic = Bytes(4096), .time = Seconds(0.000005), .spread = 0.25, .samples = 8});
  calibration.kernels = {product, gelu};
  return calibration;
}

TEST(CalibrationFile, KeepsKernelsAndTheMachine) {
  EXPECT_EQ(calibration_from_json(to_json(measured_machine()), "again"), measured_machine());
  Calibration with_noise = measured_machine();
  with_noise.machine->noise = Seconds(0.000015);
  EXPECT_EQ(calibration_from_json(to_json(with_noise), "again"), with_noise);
  Calibration of_a_job = measured_machine();
  of_a_job.trainer = MeasuredTrainer{.steps = 3,
                                     .step_time = Seconds(1.5),
                                     .host_per_kernel = Seconds(0.00001),
                                     .host_per_collective = Seconds(0.00002),
                                     .host_per_layer_forward = Seconds(0.0005),
                                     .host_per_layer_backward = Seconds(0.001),
                                     .host_per_step = Seconds(0.125),
                                     .slowdown = 1.25};
  EXPECT_EQ(calibration_from_json(to_json(of_a_job), "again"), of_a_job);
  Calibration with_gpu = measured_machine();
  with_gpu.machine->gpu = MeasuredGpu{.count = 2,
                                      .launch_overhead = Seconds(0.000002),
                                      .to_device = BytesPerSecond(5e10),
                                      .from_device = BytesPerSecond(4e10),
                                      .memory = BytesPerSecond(4e12)};
  EXPECT_EQ(calibration_from_json(to_json(with_gpu), "again"), with_gpu);
}

TEST(Calibration, NamesEveryKernelThatCannotBe) {
  Calibration calibration = measured_machine();
  calibration.kernels.push_back(calibration.kernels[0]);
  calibration.kernels[0].points[1].m = 2;
  calibration.kernels[1].points[0].time = Seconds(0.0);
  calibration.machine->cores = 0;
  calibration.machine->noise = Seconds(-1);
  EXPECT_EQ(
      hints_of(calibration),
      (std::vector<std::string>{"x#/machine/cores", "x#/machine/noise_ns", "x#/kernels/0/points/1",
                                "x#/kernels/1/points/0", "x#/kernels/2"}));
}

// Every invalid value is reported with its location; nothing is returned after a partial read.
TEST(CalibrationFile, SaysWhichKernelIsWrong) {
  const std::string sound = to_json(measured_machine());
  const struct {
    const char *what, *with, *where;
  } mutations[] = {
      {"\"gelu\"", "\"gelo\"", "x.json#/kernels/1/routine"},
      {"\"backward-weight\"", "7", "x.json#/kernels/0/phase"},
      {"\"bf16\"", "\"bf17\"", "x.json#/kernels/1/dtype"},
      {"\"m\": 2", "\"m\": -2", "x.json#/kernels/0/points/0/m"},
      {"\"samples\": 8", "\"samples\": 0", "x.json#/kernels/1/points/0/samples"},
      {"\"cores\": 2", "\"cores\": 2.5", "x.json#/machine/cores"},
      {"\"fp32\": 6", "\"fp99\": 6", "x.json#/machine/peak_flop_per_second/fp99"},
      {"\"processor\"", "\"procesor\"", "x.json#/machine"},
      {"\"spread\": 0.25", "\"spread\": [0.25]", "x.json#/kernels/1/points/0/spread"},
  };
  for (const auto& mutation : mutations) {
    SCOPED_TRACE(mutation.with);
    const std::string text = replaced(sound, mutation.what, mutation.with);
    EXPECT_EQ(diagnostics_of([&] { calibration_from_json(text, "x.json"); }).at(0).where,
              mutation.where);
  }
}

TEST(CalibrationFile, SaysWhatIsWrongWhere) {
  const std::string text = R"({"schema": 1, "provenance": {}, "collectives": [
      {"kind": "allreduce", "ranks": 1, "nodes": 1, "source": "x", "points": []}]})";
  const auto found = diagnostics_of([&] { calibration_from_json(text, "x.json"); });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, "x.json#/collectives/0/kind");
  EXPECT_EQ(found[0].hint, "did you mean 'all-reduce'?");
  EXPECT_EQ(found[1].where, "x.json#/collectives/0/ranks");
}

}  // namespace
}  // namespace meshwright
