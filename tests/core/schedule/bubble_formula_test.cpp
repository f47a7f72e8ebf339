// Closed-form bubble fractions; p = 4 devices, m = 8 micro-batches unless stated.
#include "core/schedule/bubble_formula.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/schedule/timing.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ScheduleRequest request_of(int chunks, int microbatches) {
  const Ticks unit(10);
  ScheduleRequest request;
  request.devices = 4;
  request.chunks = chunks;
  request.microbatches = microbatches;
  request.times = uniform_times(4 * chunks, unit, unit, unit);
  return request;
}

BubbleFormula formula_of(std::string_view schedule, const ScheduleRequest& request) {
  return bubble_formula(*find_schedule_rule(schedule), request).value();
}

// 1F1B: 3 / (8 + 3). Two chunks: 3 / (2 * 8 + 3). Naive: 3 / 4. ZB-H1: 3 / (3 * 8 + 3).
TEST(BubbleFormula, MatchesTheWorkedNumbers) {
  EXPECT_DOUBLE_EQ(formula_of("1f1b", request_of(1, 8)).bubble, 3.0 / 11);
  EXPECT_DOUBLE_EQ(formula_of("interleaved-1f1b", request_of(2, 8)).bubble, 3.0 / 19);
  EXPECT_DOUBLE_EQ(formula_of("naive", request_of(1, 8)).bubble, 3.0 / 4);
  EXPECT_DOUBLE_EQ(formula_of("zb-h1", request_of(1, 8)).bubble, 3.0 / 27);
  EXPECT_EQ(formula_of("1f1b", request_of(1, 8)).numbers, "(4 − 1) / (8 + 4 − 1)");
}

// Property: where no assumption is violated, the formula is the idle share of the timed schedule.
TEST(BubbleFormula, IsTheBubbleOfTheTimedScheduleUnderItsAssumptions) {
  int compared = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (const int chunks : {1, 2, 4})
      for (const int microbatches : {4, 6, 8, 16}) {
        const ScheduleRequest request = request_of(chunks, microbatches);
        const auto formula = bubble_formula(rule, request);
        if (!formula || !formula->broken.empty() || rule.problem(request)) continue;
        SCOPED_TRACE(testing::Message() << rule.name << ' ' << chunks << ' ' << microbatches);
        ScheduleRequest plain = request;
        plain.times.reset();
        const Ticks makespan = time_schedule(rule.generate(plain), *request.times).makespan;
        // F, B and W of 10 ticks for every chunk and micro-batch.
        const double busy = 30.0 * chunks * microbatches;
        EXPECT_NEAR(formula->bubble, 1 - busy / static_cast<double>(makespan.value), 1e-12);
        ++compared;
      }
  EXPECT_GE(compared, 20);
}

TEST(BubbleFormula, NamesTheAssumptionsThatAJobViolates) {
  using enum FormulaAssumption;
  EXPECT_THAT(formula_of("1f1b", request_of(1, 8)).broken, IsEmpty());
  EXPECT_THAT(formula_of("breadth-first", request_of(2, 6)).broken, ElementsAre(kWholeGroups));
  ScheduleRequest few = request_of(1, 2);
  few.times->forward[1] = Ticks(11);
  few.times->latency = Ticks(1);
  EXPECT_THAT(formula_of("zb-h1", few).broken,
              ElementsAre(kEnoughBatches, kEqualPasses, kEqualStages, kFreeMessages));
  // The warm-up of zb-h2 takes 2 p − 2 micro-batches.
  EXPECT_THAT(formula_of("zb-h2", few).broken,
              ElementsAre(kLongWarmUp, kEqualPasses, kEqualStages, kFreeMessages));
}

TEST(BubbleFormula, IsAbsentWhereNoneIsKnown) {
  EXPECT_EQ(bubble_formula(*find_schedule_rule("auto"), request_of(1, 8)), std::nullopt);
}

}  // namespace
}  // namespace meshwright
