#include "planner/synthesis/schedule_synthesis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

TEST(Synthesis, FindsAndProvesEverySmallOptimum) {
  int proved = 0, cases = 0;
  for (const auto& row : read_case_rows("exact_small_optima.csv")) {
    SCOPED_TRACE(testing::Message() << "row " << ++cases);
    ASSERT_EQ(row.size(), 9u);
    const int devices = std::stoi(row[1]);
    SynthesisRequest request;
    request.placement = row[0] == "v" ? wave_placement(devices, 2) : looped_placement(devices, 1);
    request.microbatches = std::stoi(row[2]);
    if (!row[3].empty()) request.caps.assign(static_cast<std::size_t>(devices), std::stoi(row[3]));
    request.times.forward = table_times(row[5]);
    request.times.backward_input = table_times(row[6]);
    request.times.backward_weight = table_times(row[7]);
    request.times.latency = table_time(std::stod(row[4]));
    const SynthesizedSchedule made = synthesize(request);
    const Ticks optimum = table_time(std::stod(row[8]));
    EXPECT_EQ(made.value, optimum);
    EXPECT_LE(made.lower_bound, optimum);
    proved += is_proved_optimal(made) ? 1 : 0;
  }
  EXPECT_EQ(cases, 182);
  EXPECT_EQ(proved, cases);
}

/// For any request: value not below the bound, valid schedule, within the caps.
void expect_sound_and_within_caps(const SynthesisRequest& request) {
  const SynthesizedSchedule made = synthesize(request);
  EXPECT_THAT(check_schedule(made.schedule), testing::IsEmpty());
  if (!request.caps.empty()) {
    EXPECT_THAT(check_schedule(made.schedule, request.caps), testing::IsEmpty());
  }
  const ScheduleTiming timing = time_schedule(made.schedule, request.times);
  EXPECT_EQ(made.value,
            request.objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period);
  EXPECT_LE(made.lower_bound, made.value);
  EXPECT_GE(gap_of(made), 0.0);
}

TEST(Synthesis, KeepsOrderAndCapsOnEveryPlacement) {
  struct Shape {
    Placement placement;
    int microbatches;
  };
  const Shape shapes[] = {{looped_placement(1, 1), 3}, {looped_placement(3, 1), 5},
                          {looped_placement(2, 3), 4}, {looped_placement(4, 2), 4},
                          {wave_placement(3, 2), 4},   {wave_placement(2, 4), 3}};
  for (std::uint32_t seed = 1; seed <= 12; ++seed)
    for (const Shape& shape : shapes)
      for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
        SCOPED_TRACE(testing::Message()
                     << "seed " << seed << ", " << shape.placement.devices << " devices, "
                     << shape.microbatches << " micro-batches, objective "
                     << static_cast<int>(objective));
        SynthesisRequest request = random_request(seed, shape.placement, shape.microbatches);
        request.objective = objective;
        request.effort = 400'000;
        expect_sound_and_within_caps(request);
      }
}

/// Every kind of stage, cap and latency, W without duration or longer than B, one device to twelve.
TEST(Synthesis, AnswersEveryRequestOfALine) {
  std::mt19937 random(20);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (int i = 0; i < 60; ++i) {
    const int devices = draw(1, 12), microbatches = draw(1, 24);
    SCOPED_TRACE(testing::Message() << "request " << i << ": " << devices << " devices, "
                                    << microbatches << " micro-batches");
    SynthesisRequest request;
    request.placement = looped_placement(devices, 1);
    request.microbatches = microbatches;
    const int weight = draw(0, 2) * 70;
    for (int s = 0; s < devices; ++s) {
      request.times.forward.push_back(table_time(draw(80, 120)));
      request.times.backward_input.push_back(table_time(draw(80, 120)));
      request.times.backward_weight.push_back(table_time(weight == 0 ? 0 : weight + draw(0, 20)));
    }
    request.times.latency = table_time(draw(0, 20));
    for (int d = 0; d < devices && i % 5 > 0; ++d) request.caps.push_back(draw(1, 2 * devices));
    request.objective = i % 2 == 0 ? ScheduleObjective::kMakespan : ScheduleObjective::kPeriod;
    request.effort = 300'000;
    expect_sound_and_within_caps(request);
  }
}

TEST(Synthesis, IsNeverBelowTheTrueOptimumAndNeverClaimsAFalseProof) {
  for (std::uint32_t seed = 1; seed <= 25; ++seed)
    for (const auto& placement : {looped_placement(2, 1), looped_placement(3, 1)})
      for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        SynthesisRequest request = random_request(seed, placement, 2);
        request.objective = objective;
        Ticks least = Ticks::max();
        for_every_schedule(request, [&](const Schedule& schedule) {
          const ScheduleTiming timing = time_schedule(schedule, request.times);
          least = std::min(
              least, objective == ScheduleObjective::kMakespan ? timing.makespan : timing.period);
        });
        const SynthesizedSchedule made = synthesize(request);
        EXPECT_LE(made.lower_bound, least);
        EXPECT_GE(made.value, least);
        if (objective == ScheduleObjective::kMakespan) {
          EXPECT_EQ(made.value, least);
        }
      }
}

TEST(Synthesis, GivesTheSameScheduleEveryTime) {
  const SynthesisRequest request = random_request(7, wave_placement(3, 2), 6);
  EXPECT_EQ(synthesize(request).schedule, synthesize(request).schedule);
}

TEST(SynthesisRequest, NamesWhatCannotBeSolved) {
  SynthesisRequest request;
  request.placement = looped_placement(2, 2);
  request.microbatches = 3;
  request.times = uniform_times(4, Ticks(1), Ticks(1), Ticks(1));
  EXPECT_EQ(problem_of(request), std::nullopt);
  request.caps = {2, 1};
  EXPECT_EQ(problem_of(request),
            "cap of 1 stage-micro-batches is too small for device 1, which has 2 stages");
  request.caps = {2};
  EXPECT_EQ(problem_of(request), "expected 2 caps (one per device), got 1");
  request.caps.clear();
  request.times.forward.pop_back();
  EXPECT_EQ(problem_of(request), "expected 4 times (one per stage), got 3");
}

}  // namespace
}  // namespace meshwright
