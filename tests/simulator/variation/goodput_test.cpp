#include "simulator/variation/goodput.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "simulator/variation/random_numbers.hpp"

namespace meshwright {
namespace {

FailureModel large_job() {
  return {.device_mtbf = Seconds(50'000 * 3600.0),
          .devices = 16'384,
          .checkpoint_write = Seconds(60),
          .restart = Seconds(300)};
}

// The worked number of the header.
TEST(Goodput, OfAKnownJobIsTheWorkedNumber) {
  EXPECT_NEAR(job_mtbf(large_job()).value, 10986.33, 0.01);
  EXPECT_NEAR(young_interval(large_job()).value, 1148.20, 0.01);
  EXPECT_NEAR(best_interval(large_job()).value, 1108.55, 0.01);
  EXPECT_NEAR(goodput(large_job()).useful, 0.87488, 1e-5);
}

// Daly's series for C < 2 M: sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18 M) - C. Its error is of the
// next order, (C / 2M)^(3/2): below 1e-4 of the interval up to C = M / 100.
TEST(Goodput, BestIntervalIsDalysSeriesWhereCheckpointsAreShort) {
  for (const double write : {0.1, 1.0, 10.0, 100.0}) {
    FailureModel model = large_job();
    model.checkpoint_write = Seconds(write);
    const double m = job_mtbf(model).value;
    const double series =
        std::sqrt(2 * write * m) * (1 + std::sqrt(write / (2 * m)) / 3 + write / (18 * m)) - write;
    EXPECT_NEAR(best_interval(model).value / series, 1, 1e-4) << write;
  }
}

TEST(Goodput, IsNowhereBetterThanAtTheBestInterval) {
  for (const double write : {1.0, 60.0, 3000.0}) {
    FailureModel model = large_job();
    model.checkpoint_write = Seconds(write);
    const Seconds best = best_interval(model);
    const double most = goodput(model).useful;
    for (const double factor : {0.25, 0.5, 0.9, 0.999, 1.001, 1.1, 2.0, 4.0})
      EXPECT_LT(goodput(model, best * factor).useful, most) << write << " * " << factor;
  }
}

TEST(Goodput, SharesAddUpToOne) {
  const Goodput g = goodput(large_job(), Seconds(600));
  EXPECT_NEAR(g.useful + g.checkpoints + g.lost, 1, 1e-12);
  EXPECT_NEAR(g.checkpoints / g.useful, 60.0 / 600.0, 1e-12);
}

// Without failures only checkpoints cost: t / (t + C).
TEST(Goodput, OfDevicesThatNeverFailIsWorkOverWorkAndCheckpoint) {
  FailureModel model = large_job();
  model.device_mtbf = Seconds(1e18);
  EXPECT_NEAR(goodput(model, Seconds(540)).useful, 0.9, 1e-9);
}

TEST(Goodput, IsZeroWhereAnIntervalIsNeverFinished) {
  FailureModel model = large_job();
  model.device_mtbf = Seconds(1.0);
  const Goodput g = goodput(model, Seconds(3600));
  EXPECT_EQ(g.useful, 0);
  EXPECT_EQ(g.lost, 1);
}

// The formula against a simulation of work, checkpoints and restarts with random failures, M =
// 1000 s, t = 300 s, C = 50 s, R = 100 s. X = 1000 exp(0.1) (exp(0.35) - 1) = 463.1 s; 200,000
// intervals have a standard error of about 0.2 %.
TEST(Goodput, IsWhatRandomFailuresLeave) {
  const double m = 1000, t = 300, c = 50, restart = 100;
  double clock = 0, next_failure = 0;
  std::uint64_t number = 0;
  const auto draw_failure = [&] {
    const PhiloxBlock bits = philox4x32_10({static_cast<std::uint32_t>(number++), 0, 0, 0}, {7, 0});
    next_failure = clock - m * std::log((bits[0] + 1.0) / 4294967296.0);
  };
  /// True if it completes without a failure.
  const auto passes = [&](double length) {
    if (clock + length <= next_failure) {
      clock += length;
      return true;
    }
    clock = next_failure;
    draw_failure();
    return false;
  };
  draw_failure();
  constexpr int kIntervals = 200'000;
  for (int i = 0; i < kIntervals; ++i)
    while (!passes(t + c))
      while (!passes(restart)) {
      }
  const FailureModel model{.device_mtbf = Seconds(m),
                           .devices = 1,
                           .checkpoint_write = Seconds(c),
                           .restart = Seconds(restart)};
  const double played = kIntervals * t / clock;
  EXPECT_NEAR(goodput(model, Seconds(t)).useful / played, 1, 0.01);
}

}  // namespace
}  // namespace meshwright
