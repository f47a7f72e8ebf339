/// Schedule synthesis against other searches on 60 pipelines with unequal stages and tight memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

struct Tally {
  int cases = 0, proved = 0, worse_than_listed = 0;
  double gap_sum = 0, worst_gap = 0;
};

Tally run_all(ScheduleObjective objective) {
  const bool is_makespan = objective == ScheduleObjective::kMakespan;
  Tally tally;
  for (const auto& row : read_case_rows("unequal_stages.csv")) {
    SynthesisRequest request;
    request.microbatches = std::stoi(row[0]);
    request.times.forward = table_times(row[4]);
    request.times.backward_input = table_times(row[5]);
    request.times.backward_weight = table_times(row[6]);
    request.times.latency = table_time(std::stod(row[3]));
    const std::size_t stages = request.times.forward.size();
    request.placement = looped_placement(static_cast<int>(stages), 1);
    request.caps.assign(stages, std::stoi(row[2]));
    request.objective = objective;
    SCOPED_TRACE(testing::Message()
                 << "row " << ++tally.cases << ": " << stages << " stages, " << row[0]
                 << " micro-batches, " << row[1] << ", cap " << row[2]);
    const SynthesizedSchedule made = synthesize(request);
    EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
    EXPECT_LE(made.lower_bound, made.value);
    EXPECT_GE(made.value, table_time(std::stod(row[is_makespan ? 7 : 9])));
    const Ticks listed = table_time(std::stod(row[is_makespan ? 8 : 10]));
    EXPECT_LE(made.lower_bound, listed);
    tally.worse_than_listed += made.value > listed ? 1 : 0;
    tally.proved += is_proved_optimal(made) ? 1 : 0;
    tally.gap_sum += gap_of(made);
    tally.worst_gap = std::max(tally.worst_gap, gap_of(made));
  }
  return tally;
}

TEST(UnequalStages, MakespansAreProvedOrClose) {
  const Tally tally = run_all(ScheduleObjective::kMakespan);
  EXPECT_EQ(tally.cases, 60);
  EXPECT_GE(tally.proved, 56);
  EXPECT_LE(tally.gap_sum / tally.cases, 0.0002);
  EXPECT_LE(tally.worst_gap, 0.003);
  EXPECT_LE(tally.worse_than_listed, 1);
}

TEST(UnequalStages, PeriodsAreProvedOrClose) {
  const Tally tally = run_all(ScheduleObjective::kPeriod);
  EXPECT_EQ(tally.cases, 60);
  EXPECT_GE(tally.proved, 54);
  EXPECT_LE(tally.gap_sum / tally.cases, 0.0003);
  EXPECT_LE(tally.worst_gap, 0.004);
  EXPECT_LE(tally.worse_than_listed, 1);
}

}  // namespace
}  // namespace meshwright
