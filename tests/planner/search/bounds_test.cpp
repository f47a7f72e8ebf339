#include "planner/search/bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/lowering/lower.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/memory_screen.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

StepEndTimes nothing_after(int devices) {
  return {.reduction = std::vector<Ticks>(static_cast<std::size_t>(devices)),
          .rest = Ticks(),
          .communication = Ticks()};
}

PassTimes passes(std::int64_t forward, std::int64_t input, std::int64_t weight) {
  return {Ticks(forward), Ticks(input + weight), Ticks(input)};
}

// Equal stages, free messages: (m + (p - 1) / v) (F + B) with F = 2, B = 4 per device.
TEST(StepBound, IsTheClosedFormForEqualStages) {
  const std::vector<PassTimes> one_chunk(4, passes(2, 2, 2));
  EXPECT_EQ(step_bound(looped_placement(4, 1), one_chunk, 8, false, nothing_after(4)),
            Ticks((8 + 3) * 6));
  const std::vector<PassTimes> two_chunks(8, passes(1, 1, 1));
  EXPECT_EQ(step_bound(looped_placement(4, 2), two_chunks, 8, false, nothing_after(4)),
            Ticks(8 * 6 + 3 * 3));
}

// Stages F/B 1/2, 5/10, 1/2 and m = 3: the middle device waits 1, works 3 * 15 and 2 follow.
TEST(StepBound, FollowsTheSlowestStage) {
  const std::vector<PassTimes> stages{passes(1, 1, 1), passes(5, 5, 5), passes(1, 1, 1)};
  EXPECT_EQ(step_bound(looped_placement(3, 1), stages, 3, false, nothing_after(3)),
            Ticks(1 + 45 + 2));
}

// F = I = W = 1, p = 2, m = 2. Device 1 starts at 1, its F and I take 4, one I follows: 6. All its
// passes: 1 + 6 = 7.
TEST(StepBound, LetsNobodyWaitForWeightGradients) {
  const std::vector<PassTimes> stages(2, passes(1, 1, 1));
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, true, nothing_after(2)), Ticks(7));
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, nothing_after(2)),
            Ticks(1 + 6 + 2));
}

// Device 1 ends at 1 + 6 = 7 and reduces for 9; device 0 ends at 9 and reduces for 4; then 5.
TEST(StepBound, AddsWhatFollowsTheLastBackward) {
  const std::vector<PassTimes> stages(2, passes(1, 1, 1));
  StepEndTimes end{.reduction = {Ticks(4), Ticks(9)}, .rest = Ticks(5), .communication = Ticks()};
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, end), Ticks(16 + 5));
  end.communication = Ticks(30);  // beside the passes
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, end), Ticks(30 + 5));
}

// F = 1, B = 2. The first gradient is on device 1 after 2 F, on device 0 after another B: 2 and 4.
// Reductions in the last pass only: device 1 has then waited 1 and worked for 2 * 3 - 2.
TEST(StepBound, LetsReductionsWaitForGradients) {
  const std::vector<PassTimes> stages(2, passes(1, 1, 1));
  StepEndTimes end = nothing_after(2);
  end.reductions = {Ticks(20), Ticks(30)};
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, end), Ticks(2 + 30));
  end.reductions.front() = Ticks(30);
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, end), Ticks(4 + 30));
  end.reduces_in_last_pass = true;
  EXPECT_EQ(step_bound(looped_placement(2, 1), stages, 2, false, end), Ticks(1 + 4 + 30));
}

// One micro-batch passes 4 stages of F = 1, B = 2 on two devices: 4 * 3, although each device works
// for 6 only. A second one waits for the longest pass.
TEST(StepBound, LetsEveryMicrobatchPassAllStages) {
  const std::vector<PassTimes> stages(4, passes(1, 1, 1));
  EXPECT_EQ(step_bound(looped_placement(2, 2), stages, 1, false, nothing_after(2)), Ticks(12));
  EXPECT_EQ(step_bound(looped_placement(2, 2), stages, 2, false, nothing_after(2)),
            Ticks(std::max(12 + 2, 1 + 2 * 6 + 2)));
}

// Stage 0 gathers for 5 in a pass, 2 of them its largest unit. 1F1B of 3 micro-batches on two
// devices: rank 0 runs F F B F B B of its only stage. Three passes go back or forth after the other
// direction and start with a unit that is still gathered; F F and B B only if the stage has one
// unit. Other collectives take 4.
TEST(TimeWithGathers, LeavesOutUnitsThatAreStillGathered) {
  StepEndTimes end = nothing_after(2);
  end.gathers = {{.rank = 0, .stage = StageId(0), .pass = Ticks(5), .largest_unit = Ticks(2)}};
  end.beside_gathers = {Ticks(4), Ticks(7)};
  ScheduleRequest request;
  request.devices = 2;
  request.microbatches = 3;
  const Schedule schedule = find_schedule_rule("1f1b")->generate(request);
  EXPECT_EQ(time_with_gathers(end, schedule), Ticks(6 * 5 - 3 * 2 + 4));
  end.gathers.front().largest_unit = Ticks(5);
  EXPECT_EQ(time_with_gathers(end, schedule), Ticks(6 * 5 - 5 * 5 + 4));
  end.gathers.clear();
  EXPECT_EQ(time_with_gathers(end, schedule), Ticks(7));  // of the busier rank
}

class EveryCandidate : public testing::TestWithParam<bool> {
 protected:
  static SmallJob small_job(Bytes memory) {
    const bool experts = GetParam();
    return {experts ? small_expert_model() : small_dense_model(),
            memory,
            {.gpus = 8, .global_batch = 16, .sequence_length = 512}};
  }
};
INSTANTIATE_TEST_SUITE_P(DenseAndExperts, EveryCandidate, testing::Bool());

constexpr std::size_t kTried = 1500;

/// The number of blocks is not chosen by a search here.
void choose_one_block(Candidate& candidate) {
  if (candidate.recompute.kind == RecomputeKind::kBlocks) candidate.recompute.blocks = 1;
}

TEST_P(EveryCandidate, TakesAtLeastItsBounds) {
  const SmallJob small = small_job(Bytes(80'000'000'000));
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  double tightest = 0;
  int reducing = 0;
  for (Candidate candidate : small.candidates(kTried)) {
    choose_one_block(candidate);
    const Plan plan = costs.plan_of(candidate);
    SCOPED_TRACE(text_of(plan));
    const TaskGraph graph = lower(plan, small.model, small.cluster);
    const Ticks simulated =
        makespan(simulate(graph, price_works(graph.parts, graph.works, *small.cost_model)));
    const CandidateBounds bounds = bounds_of(candidate, costs);
    ASSERT_TRUE(are_ascending(bounds));
    ASSERT_LE(bounds.pipeline, simulated);
    ASSERT_LE(bounds.schedule, simulated);
    ASSERT_LE(bounds.candidate, simulated);
    const Ticks reduction = costs.reduction_bound(candidate);
    ASSERT_LE(reduction, bounds.candidate) << "the end of the step counts the same collectives";
    const Replication& replication = candidate.replication;
    const bool by_layer =
        replication.zero == 3 ||
        (replication.zero == 2 && replication.data.buckets.rule == BucketRule::kNone);
    ASSERT_EQ(reduction > Ticks(), by_layer && replica_count(candidate.layout.degrees) > 1);
    reducing += reduction > Ticks() ? 1 : 0;
    tightest = std::max(tightest, ratio(bounds.candidate, simulated));
  }
  EXPECT_EQ(tightest, 1.0) << "without a pipeline the bound is the step time";
  EXPECT_GT(reducing, 100);
}

// With twice the micro-batches and only the second half counted, the end of a step is the same.
TEST_P(EveryCandidate, EndsItsStepWithTheMicrobatchesThatAreCounted) {
  const SmallJob small = small_job(Bytes(80'000'000'000));
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  int compared = 0;
  for (Candidate candidate : small.candidates(kTried)) {
    choose_one_block(candidate);
    Plan plan = costs.plan_of(candidate);
    if (plan.strategy.zero < 2) continue;
    const std::int64_t microbatches = request_of(plan.strategy).microbatches;
    const auto end_with = [&](std::int64_t rounds, std::int64_t first_counted) {
      plan.strategy.global_batch = rounds * small.goal.global_batch;
      const TaskGraph graph = lower(plan, small.model, small.cluster);
      return step_end_times(graph, price_works(graph.parts, graph.works, *small.cost_model),
                            CountedGathers::kNone, first_counted);
    };
    SCOPED_TRACE(text_of(plan));
    ASSERT_EQ(end_with(2, microbatches), end_with(1, 0));
    ASSERT_GE(end_with(2, 0).communication, end_with(1, 0).communication);
    if (++compared == 200) break;
  }
  EXPECT_EQ(compared, 200);
}

TEST_P(EveryCandidate, HasTheBoundOfPipelinesThatDifferInTheirOrderOnly) {
  const SmallJob small = small_job(Bytes(80'000'000'000));
  const SearchJob job = small.job();
  const SearchSpace space = small.space();
  CandidateCosts costs(job);
  int shared = 0;
  for (std::size_t i = 0; i < space.branches.size(); i += 97) {
    const SearchSpace::Branch& branch = space.branches[i];
    const auto pipelines = space.pipelines(branch);
    const SharedLayers layers = costs.layers(branch.layout, {});
    for (const PipelineChoice& pipeline : pipelines) {
      const PipelineChoice& first = pipelines[pipeline.bounded_as];
      ASSERT_EQ(first.bounded_as, pipeline.bounded_as);
      ASSERT_EQ(costs.pipeline_bound(branch.layout, layers, pipeline, {}),
                costs.pipeline_bound(branch.layout, layers, first, {}));
      shared += &first != &pipeline ? 1 : 0;
    }
  }
  EXPECT_GT(shared, 20);
}

TEST_P(EveryCandidate, IsTurnedDownOnlyIfItsSimulatedPeakDoesNotFit) {
  const SmallJob tight = small_job(Bytes(GetParam() ? 250'000'000 : 800'000'000));
  const SearchJob job = tight.job();
  CandidateCosts costs(job);
  MemoryScreen screen(job, costs);
  int rough = 0, closer = 0, exact = 0, kept = 0;
  for (Candidate candidate : tight.candidates(kTried)) {
    choose_one_block(candidate);
    const Plan plan = costs.plan_of(candidate);
    SCOPED_TRACE(text_of(plan));
    const Evaluation evaluation = tight.evaluate(plan);
    const SharedLayers layers = costs.layers(candidate.layout, candidate.recompute);
    if (const auto found = screen.rough_shortfall_of(candidate, layers)) {
      ASSERT_LE(found->needed, peak_memory(evaluation));
      ++rough;
    }
    if (const auto found = screen.shortfall_of(candidate)) {
      ASSERT_LE(found->needed, peak_memory(evaluation));
      ++closer;
    }
    if (const auto found = shortfall_of(plan, job)) {
      ASSERT_LE(found->needed, peak_memory(evaluation));
      ASSERT_FALSE(fits_in_memory(evaluation));
      ++exact;
    } else {
      ++kept;
    }
  }
  EXPECT_GT(rough, 20);
  EXPECT_GE(closer, rough);
  EXPECT_GE(exact, closer);
  EXPECT_GT(kept, 20);
}

/// What a training program allocates differs: none counts less than the screen.
class EveryTrainer : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Trainers, EveryTrainer, testing::ValuesIn(trainer_preset_names()));

TEST_P(EveryTrainer, NeedsAtLeastWhatTheScreenCounts) {
  const Trainer trainer = trainer_from_toml(find_trainer(GetParam()));
  double tightest = 0;
  for (const bool experts : {false, true}) {
    SmallJob small(experts ? small_expert_model() : small_dense_model(), Bytes(1), kSmallGoal);
    small.cost_model = make_device_cost_model(small.cluster, trainer);
    const SearchJob job = small.job();
    CandidateCosts costs(job);
    MemoryScreen screen(job, costs);
    constexpr std::size_t kTriedPerTrainer = 250;
    for (Candidate candidate : small.candidates(kTriedPerTrainer)) {
      choose_one_block(candidate);
      const Plan plan = costs.plan_of(candidate);
      SCOPED_TRACE(text_of(plan));
      const Bytes peak = peak_memory(small.evaluate(plan));
      const SharedLayers layers = costs.layers(candidate.layout, candidate.recompute);
      for (const HeldCount count : {HeldCount::kFormula, HeldCount::kOrders}) {
        const Bytes needed = screen.rough_shortfall_of(candidate, layers, count)->needed;
        ASSERT_LE(needed, peak);
        tightest = std::max(tightest, ratio(needed, peak));
      }
    }
  }
  EXPECT_GT(tightest, 0.9);
}

// Of a program that keeps the embedding and the head gathered, too.
TEST_P(EveryTrainer, TakesAtLeastTheBounds) {
  const Trainer trainer = trainer_from_toml(find_trainer(GetParam()));
  for (const bool experts : {false, true}) {
    SmallJob small(experts ? small_expert_model() : small_dense_model(), kPlenty, kSmallGoal);
    small.cost_model = make_device_cost_model(small.cluster, trainer);
    const SearchJob job = small.job();
    CandidateCosts costs(job);
    constexpr std::size_t kTriedPerTrainer = 250;
    for (Candidate candidate : small.candidates(kTriedPerTrainer)) {
      choose_one_block(candidate);
      const Plan plan = costs.plan_of(candidate);
      SCOPED_TRACE(text_of(plan));
      ASSERT_LE(bounds_of(candidate, costs).candidate, small.evaluate(plan).step_time);
    }
  }
}

// The layer times of layer_costs() add up to the stage times of lower_stages().
TEST_P(EveryCandidate, HasStagesThatAreTheSumsOfTheirLayers) {
  const SmallJob small = small_job(Bytes(80'000'000'000));
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  for (Candidate candidate : small.candidates(kTried)) {
    choose_one_block(candidate);
    const bool has_whole_passes = !cuts_passes(costs.plan_of(candidate).strategy);
    if (!has_whole_passes || candidate.pipeline.rule->output_barriers > 0) continue;
    const Plan plan = costs.plan_of(candidate);
    const LoweredStages lowered = lower_stages(plan, small.model, small.cluster);
    const std::vector<WorkPrice> prices =
        price_works(lowered.parts, lowered.works, *small.cost_model);
    const std::vector<PassTimes> parts =
        stage_passes(costs.layers(candidate.layout, candidate.recompute)->passes,
                     plan.blocks_per_stage, candidate.recompute);
    for (std::size_t p = 0; p < parts.size(); ++p) {  // the first stages hold parts in order
      const StageWorks& works = lowered.stages[p];
      ASSERT_EQ(parts[p].forward, prices[works.forward.index()].duration);
      ASSERT_EQ(parts[p].backward, prices[works.backward.index()].duration);
      ASSERT_EQ(parts[p].backward_input, prices[works.backward_input.index()].duration);
    }
  }
}

}  // namespace
}  // namespace meshwright
