/// Schedule synthesis against other searches on 60 pipelines with unequal stages and tight memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

/// Limits over all cases.
struct Limits {
  int fewest_proved;
  double mean_gap, worst_gap;
};

void expect_proved_or_close(ScheduleObjective objective, const Limits& limits) {
  const bool is_makespan = objective == ScheduleObjective::kMakespan;
  int cases = 0, proved = 0, worse_than_listed = 0;
  double gap_sum = 0, worst_gap = 0;
  for (const auto& row : read_case_rows("unequal_stages.csv")) {
    const SynthesisRequest request = unequal_stages_request(row, objective);
    SCOPED_TRACE(testing::Message()
                 << "row " << ++cases << ": " << request.caps.size() << " stages, " << row[0]
                 << " micro-batches, " << row[1] << ", cap " << row[2]);
    const SynthesizedSchedule made = synthesize(request);
    EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
    EXPECT_LE(made.lower_bound, made.value);
    EXPECT_GE(made.value, table_time(std::stod(row[is_makespan ? 7 : 9])));
    const Ticks listed = table_time(std::stod(row[is_makespan ? 8 : 10]));
    EXPECT_LE(made.lower_bound, listed);
    worse_than_listed += made.value > listed ? 1 : 0;
    proved += is_proved_optimal(made) ? 1 : 0;
    gap_sum += gap_of(made);
    worst_gap = std::max(worst_gap, gap_of(made));
  }
  EXPECT_EQ(cases, 60);
  EXPECT_GE(proved, limits.fewest_proved);
  EXPECT_LE(gap_sum / cases, limits.mean_gap);
  EXPECT_LE(worst_gap, limits.worst_gap);
  EXPECT_LE(worse_than_listed, 1);
}

TEST(UnequalStages, MakespansAreProvedOrClose) {
  expect_proved_or_close(ScheduleObjective::kMakespan,
                         {.fewest_proved = 58, .mean_gap = 0.0002, .worst_gap = 0.003});
}

TEST(UnequalStages, PeriodsAreProvedOrClose) {
  expect_proved_or_close(ScheduleObjective::kPeriod,
                         {.fewest_proved = 55, .mean_gap = 0.0003, .worst_gap = 0.004});
}

/// The 20 largest of 240 pipelines: 32 stages, 256 micro-batches.
TEST(LargePipelines, MakespansAreProvedOrClose) {
  int cases = 0, proved = 0;
  double gap_sum = 0, worst_gap = 0;
  for (const SynthesisRequest& request : pipelines_up_to_32_stages()) {
    if (request.microbatches < 256) continue;
    SCOPED_TRACE(testing::Message() << "case " << ++cases << ", cap " << request.caps.front());
    const SynthesizedSchedule made = synthesize(request);
    EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
    EXPECT_EQ(made.value, time_schedule(made.schedule, request.times).makespan);
    EXPECT_LE(made.lower_bound, made.value);
    proved += is_proved_optimal(made) ? 1 : 0;
    gap_sum += gap_of(made);
    worst_gap = std::max(worst_gap, gap_of(made));
  }
  EXPECT_EQ(cases, 20);
  EXPECT_GE(proved, 16);
  EXPECT_LE(gap_sum / cases, 0.0012);
  EXPECT_LE(worst_gap, 0.013);
}

}  // namespace
}  // namespace meshwright
