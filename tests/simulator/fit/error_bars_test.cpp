#include "simulator/fit/error_bars.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace meshwright {
namespace {

JobTraits a100_job() {
  return {.device = "A100-SXM4-80GB",
          .compute_capability = 80,
          .trainer = "megatron-core",
          .bits = 16,
          .log2_devices = 6,
          .log2_parameters = 34,
          .log2_sequence = 11};
}

/// `count` runs like the job, all off by the same factor.
std::vector<ValidatedRun> runs_of(const std::string& source, int count, double ratio) {
  return std::vector<ValidatedRun>(
      static_cast<std::size_t>(count),
      {.source = source, .id = "run", .traits = a100_job(), .log_error = std::log(ratio)});
}

// One source that is off by 10 %: N(log 1.1, 0.05), whose quantiles lie 1.2816 standard deviations
// from its mean.
TEST(ErrorBar, SpreadsASingleErrorByTheRepeatabilityOfMeasurements) {
  const auto bar = error_bar(a100_job(), runs_of("a", 8, 1.1));
  ASSERT_TRUE(bar.has_value());
  EXPECT_NEAR(bar->p10, 1.1 * std::exp(-1.2816 * 0.05), 1e-4);
  EXPECT_NEAR(bar->p90, 1.1 * std::exp(1.2816 * 0.05), 1e-4);
  EXPECT_EQ(bar->runs, 8);
  EXPECT_EQ(bar->sources, std::vector<std::string>{"a"});
}

// 100 runs against 1, equally near: weights sqrt(100) and sqrt(1), so the large source holds 10 of
// 11 parts; p90 (9.9 of 11 parts) still belongs to it, while with weights 100 : 1 the smaller
// source would not matter at all, and with 1 : 1 the median would lie between them.
TEST(ErrorBar, KeepsALargeSourceFromDrowningASmallOne) {
  std::vector<ValidatedRun> runs = runs_of("large", 100, 1.0);
  const double alone = error_bar(a100_job(), runs)->p90;
  for (const ValidatedRun& run : runs_of("small", 1, 1.5)) runs.push_back(run);
  const double both = error_bar(a100_job(), runs)->p90;
  EXPECT_GT(both, alone + 0.03);
  EXPECT_LT(both, 1.4);
}

TEST(ErrorBar, IsAbsentWhereNothingNearWasMeasured) {
  JobTraits other = a100_job();
  other.device = "MI300X";
  other.compute_capability = 0;
  other.bits = 8;
  other.experts = true;
  other.trainer = "torchtitan";
  EXPECT_FALSE(error_bar(other, runs_of("a", 8, 1.0)).has_value());
  EXPECT_FALSE(error_bar(a100_job(), {}).has_value());
}

TEST(ErrorBar, LeavesOutTheSourceThatIsPredicted) {
  std::vector<ValidatedRun> runs = runs_of("a", 8, 1.3);
  EXPECT_FALSE(error_bar(a100_job(), runs, "a").has_value());
  for (const ValidatedRun& run : runs_of("b", 8, 1.0)) runs.push_back(run);
  EXPECT_NEAR(error_bar(a100_job(), runs, "a")->p90, std::exp(1.2816 * 0.05), 1e-4);
}

TEST(ErrorBar, DistanceIsZeroOnlyForEqualTraits) {
  const JobTraits job = a100_job();
  EXPECT_EQ(distance(job, job), 0);
  JobTraits larger = job;
  larger.log2_devices += 1;
  EXPECT_GT(distance(job, larger), 0);
  EXPECT_DOUBLE_EQ(distance(job, larger), distance(larger, job));
  JobTraits hopper = job;
  hopper.device = "H100-SXM5-80GB";
  hopper.compute_capability = 90;
  JobTraits ampere = job;
  ampere.device = "A100-SXM4-40GB";
  EXPECT_GT(distance(job, hopper), distance(job, ampere));
}

// 1.00 s +- 10 % and 1.15 s +- 10 % overlap, 1.00 s and 1.30 s do not.
TEST(ErrorBar, CallsPlansWithOverlappingRangesEqual) {
  const ErrorBar bar{.p10 = 0.9, .p90 = 1.1, .runs = 1, .sources = {}};
  const auto ms = [](std::int64_t n) { return Ticks(n * kTicksPerSecond / 1000); };
  const StepTimeRange first = *range_of(ms(1000), bar);
  EXPECT_EQ(first.p10, ms(900));
  EXPECT_EQ(first.p90, ms(1100));
  EXPECT_TRUE(equal_within_error(first, *range_of(ms(1150), bar)));
  EXPECT_FALSE(equal_within_error(first, *range_of(ms(1300), bar)));
  EXPECT_FALSE(range_of(ms(1000), std::nullopt).has_value());
}

}  // namespace
}  // namespace meshwright
