#include "core/timeline/compare.hpp"

#include <gtest/gtest.h>

#include "core/timeline/timeline_steps.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

struct Ends {
  std::int64_t forward_end, send_end, last_start, last_end;
};

/// Rank 0 computes F, sends its result, then computes B; rank 1 receives and computes F meanwhile.
/// F of rank 0 starts at 0, its send where F ends.
Timeline timeline(TimelineOrigin origin, const Ends& e) {
  Timeline t;
  t.origin = origin;
  t.clock =
      origin == TimelineOrigin::kPredicted ? TimelineClock::kSimulated : TimelineClock::kVirtual;
  t.tracks = {
      {RankId(0), Stream::kCompute}, {RankId(0), Stream::kSendNext}, {RankId(1), Stream::kCompute}};
  t.names = {"r0.compute.s0.F0", "r0.compute.s0.B0", "r0.send-next.s0.send0", "r1.compute.s1.F0"};
  t.spans = {
      {Ticks(0), Ticks(e.forward_end), 0, 0, 0, 0, TaskKind::kForward},
      {Ticks(e.last_start), Ticks(e.last_end), 0, 1, 0, 0, TaskKind::kBackward},
      {Ticks(e.forward_end), Ticks(e.send_end), 1, 2, 0, 0, TaskKind::kSend},
      {Ticks(e.send_end), Ticks(e.send_end + 10), 2, 3, 0, 1, TaskKind::kForward},
  };
  return t;
}
Timeline predicted() { return timeline(TimelineOrigin::kPredicted, {100, 120, 150, 300}); }
Timeline measured() { return timeline(TimelineOrigin::kMeasured, {110, 150, 180, 340}); }

ValidationReport report_of(const Timeline& prediction, const Timeline& measurement) {
  return compare({prediction, "p.pftrace"}, {measurement, "m.pftrace"});
}

// 300 against 340 ticks: 300 / 340 - 1.
TEST(Compare, GivesTheErrorOfTheStepRelativeToWhatWasMeasured) {
  const ValidationReport report = report_of(predicted(), measured());
  EXPECT_EQ(report.predicted_step, Ticks(300));
  EXPECT_EQ(report.measured_step, Ticks(340));
  EXPECT_DOUBLE_EQ(*step_error(report), 300.0 / 340 - 1);
  EXPECT_EQ(report.matched, 4);
  EXPECT_EQ(report.counted_steps, 1);
}

// F: rank 0 100 against 110, rank 1 10 against 10. B: 150 against 160. Sends: 20 against 40.
TEST(Compare, SumsTasksByKindStageAndStream) {
  const ValidationReport report = report_of(predicted(), measured());
  ASSERT_EQ(report.by_kind.size(), 3u);
  EXPECT_EQ(report.by_kind[0].name, "F");
  EXPECT_EQ(report.by_kind[0].tasks, 2);
  EXPECT_EQ(report.by_kind[0].predicted, Ticks(110));
  EXPECT_EQ(report.by_kind[0].measured, Ticks(120));
  EXPECT_DOUBLE_EQ(report.by_kind[0].mean_error, (10.0 / 110 + 0) / 2);
  ASSERT_EQ(report.by_stage.size(), 2u);
  EXPECT_EQ(report.by_stage[0].name, "stage 0");
  EXPECT_EQ(report.by_stage[0].measured, Ticks(110 + 160));
  ASSERT_EQ(report.by_stream.size(), 1u);
  EXPECT_EQ(report.by_stream[0].name, "send-next");
  EXPECT_EQ(report.by_stream[0].predicted, Ticks(20));
  EXPECT_EQ(report.by_stream[0].measured, Ticks(40));
}

TEST(Compare, NamesTheLargestDifferencesFirst) {
  const ValidationReport report = report_of(predicted(), measured());
  ASSERT_EQ(report.worst.size(), 4u);
  EXPECT_EQ(report.worst[0], (ComparedTask{"r0.send-next.s0.send0", Ticks(20), Ticks(40)}));
  EXPECT_EQ(report.worst[3].name, "r1.compute.s1.F0");
}

// Rank 0, predicted: busy 100 + 150; from 100 to 150 the message takes 20, so 30 are waiting.
// Measured: busy 110 + 160; from 110 to 180 the message takes 40, and 30 are waiting. The
// difference is 20 of compute and 20 of communication, 40 in total.
TEST(Compare, SharesOutTheStepsErrorWithoutARest) {
  const StepAttribution a = report_of(predicted(), measured()).attribution;
  EXPECT_EQ(a, (StepAttribution{RankId(0), Ticks(20), Ticks(20), Ticks(0)}));
  EXPECT_EQ(total(a), Ticks(340 - 300));
}

// B of rank 0 starts 25 later, nothing else changes: all of it is waiting.
TEST(Compare, CallsIdleTimeWithoutMessagesWaiting) {
  const StepAttribution a =
      report_of(predicted(), timeline(TimelineOrigin::kMeasured, {100, 120, 175, 325})).attribution;
  EXPECT_EQ(a, (StepAttribution{RankId(0), Ticks(0), Ticks(0), Ticks(25)}));
}

// Five steps, B of rank 0 ending at 900 (warm-up), 340, 330, 350, 320: without the first the upper
// median is 340; quartiles of 320 330 340 350 are 320 and 340 (lower positions).
TEST(Compare, TakesMediansOverStepsAndLeavesOutTheFirst) {
  std::vector<Timeline> steps;
  for (const std::int64_t end : {900, 340, 330, 350, 320})
    steps.push_back(timeline(TimelineOrigin::kMeasured, {110, 150, 180, end}));
  const ValidationReport report = report_of(predicted(), join_steps(steps));
  EXPECT_EQ(report.counted_steps, 4);
  EXPECT_EQ(report.measured_step, Ticks(340));
  EXPECT_EQ(report.measured_spread, Ticks(340 - 320));
  EXPECT_EQ(report.by_kind[1].name, "B");
  EXPECT_EQ(report.by_kind[1].measured, Ticks(340 - 180));
}

TEST(Compare, SetsPeaksOfEachRankBesideEachOtherWithoutReservedMemory) {
  Timeline prediction = predicted(), measurement = measured();
  MemoryAmounts amounts;
  amounts[MemoryClass::kActivations] = Bytes(90);
  amounts[MemoryClass::kReserved] = Bytes(1000);
  prediction.memory = {{Ticks(), 0, amounts}, {Ticks(), 1, amounts}};
  amounts = {};
  amounts[MemoryClass::kActivations] = Bytes(60);
  measurement.memory = {{Ticks(), 0, amounts}, {Ticks(5), 0, {}}};
  amounts[MemoryClass::kActivations] = Bytes(100);
  measurement.memory.insert(measurement.memory.begin() + 1, {Ticks(3), 0, amounts});
  const ValidationReport report = report_of(prediction, measurement);
  EXPECT_EQ(report.memory, (std::vector<ComparedMemory>{{RankId(0), Bytes(90), Bytes(100)}}));
  EXPECT_DOUBLE_EQ(*peak_memory_error(report), 0.1);
  EXPECT_EQ(peak_memory_error(report_of(predicted(), measured())), std::nullopt);
}

// A prediction of representatives has no tracks for the other ranks.
TEST(Compare, LeavesOutRanksThatThePredictionFoldedAway) {
  Timeline folded = predicted();
  folded.spans.pop_back();
  const ValidationReport report = report_of(folded, measured());
  EXPECT_EQ(report.matched, 3);
  EXPECT_EQ(report.ranks_left_out, 1);
}

std::string complaint(const Timeline& prediction, const Timeline& measurement) {
  const Diagnostic d = diagnostics_of([&] { report_of(prediction, measurement); }).at(0);
  return d.where + ": " + d.what;
}

TEST(Compare, RefusesTimelinesOfDifferentPlans) {
  Timeline other = measured();
  other.names.set(1, "r0.compute.s0.W0");
  EXPECT_EQ(complaint(predicted(), other),
            "m.pftrace: not a measurement of the plan of p.pftrace: 3 tasks in common, "
            "1 only in p.pftrace, 1 only here; "
            "r0.compute.s0.B0 is not in m.pftrace");
  Timeline more = measured();
  more.names.push_back("r0.compute.s0.W0");
  more.spans.insert(more.spans.begin() + 2,
                    {Ticks(340), Ticks(350), 0, 4, 0, 0, TaskKind::kBackwardWeight});
  EXPECT_EQ(complaint(predicted(), more),
            "m.pftrace: not a measurement of the plan of p.pftrace: 4 tasks in common, "
            "0 only in p.pftrace, 1 only here; "
            "r0.compute.s0.W0 is not in p.pftrace");
}

// The last task of rank 0 is missing (three of four tasks).
TEST(Compare, SaysOfARunThatWasInterruptedThatItWasAndNotThatItIsAnotherPlan) {
  Timeline part = measured();
  part.spans.erase(part.spans.begin() + 1);
  part.provenance["steps"] = "interrupted after 0 of 5 steps";
  EXPECT_EQ(complaint(predicted(), part),
            "m.pftrace: interrupted before the first step was complete: 3 of 4 tasks of p.pftrace");
  part.names.set(0, "r0.compute.s0.F7");
  EXPECT_EQ(complaint(predicted(), part),
            "m.pftrace: not a measurement of the plan of p.pftrace: 2 tasks in common, "
            "2 only in p.pftrace, 1 only here; "
            "r0.compute.s0.B0 is not in m.pftrace");
}

TEST(Compare, RefusesNothingAndTheWrongWayRound) {
  EXPECT_EQ(complaint(Timeline{}, measured()), "p.pftrace: the timeline has no tasks");
  EXPECT_EQ(complaint(measured(), predicted()),
            "p.pftrace: expected a predicted timeline first, got a measured and a predicted one");
}

}  // namespace
}  // namespace meshwright
