#include "planner/search/neighbors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/search/search.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;

SmallJob small_job(Bytes memory) { return {small_dense_model(), memory, kSmallGoal}; }

Plan plan_of(const Strategy& strategy, const SmallJob& job) {
  return complete_plan(strategy, job.model, job.cluster, *job.cost_model);
}

Strategy small_strategy() {
  Strategy s;
  s.degrees.tensor = 2;
  s.degrees.data = 4;
  s.global_batch = kSmallGoal.global_batch;
  s.sequence_length = kSmallGoal.sequence_length;
  return s;
}

std::vector<std::string> changes_of(const std::vector<EvaluatedNeighbor>& neighbors) {
  std::vector<std::string> changes;
  for (const EvaluatedNeighbor& neighbor : neighbors) changes.push_back(neighbor.change);
  return changes;
}

TEST(DifferenceOfPlans, AddsUpToBothStepsForRandomPlans) {
  constexpr std::size_t kPlans = 200;
  for (const ModelGraph& model : {small_dense_model(), small_expert_model()}) {
    const SmallJob job(model, kPlenty, kSmallGoal);
    const SearchJob search_job = job.job();
    CandidateCosts costs(search_job);
    std::optional<Evaluation> before;
    const std::vector<Candidate> candidates = job.candidates(kPlans);
    EXPECT_EQ(candidates.size(), kPlans);
    for (const Candidate& candidate : candidates) {
      const Plan plan = costs.plan_of(candidate);
      SCOPED_TRACE(to_json(plan.strategy, -1));
      const Evaluation evaluation = job.evaluate(plan);
      const EvaluationDifference d = difference(before.value_or(evaluation), evaluation),
                                 reverse = difference(evaluation, before.value_or(evaluation));
      Ticks step, by_cause;
      Bytes memory;
      for (std::size_t t = 0; t < d.step.size(); ++t) {
        step += d.step[t].b;
        EXPECT_GE(d.step[t].b, Ticks()) << d.step[t].name;
        EXPECT_EQ(d.step[t].change(), -reverse.step[t].change());
      }
      for (const auto& cause : d.causes) by_cause += cause.b;
      for (std::size_t m = 0; m < d.memory.size(); ++m) {
        memory += d.memory[m].b;
        EXPECT_EQ(d.memory[m].change(), -reverse.memory[m].change());
      }
      EXPECT_EQ(step, evaluation.step_time);
      EXPECT_EQ(by_cause, evaluation.step_time);
      EXPECT_EQ(memory, peak_memory(evaluation));
      before = evaluation;
    }
  }
}

TEST(Neighbors, SayOnWhichRankTheirMemoryPeaks) {
  const SmallJob job = small_job(kPlenty);
  const Plan plan = plan_of(small_strategy(), job);
  for (const EvaluatedNeighbor& n :
       evaluate_neighbors({plan, job.model, job.cluster, *job.cost_model})) {
    SCOPED_TRACE(n.change);
    EXPECT_EQ(total(n.fullest_memory), n.figures.peak_memory);
    EXPECT_EQ(n.figures.peak_memory_per_stage[static_cast<std::size_t>(n.fullest_pipeline_rank)],
              n.figures.peak_memory);
  }
}

TEST(Neighbors, TowardsAnotherPlanTakeOverOneChoiceEach) {
  const SmallJob job = small_job(kPlenty);
  const Plan plan = plan_of(small_strategy(), job);
  const TrainingJob training{plan, job.model, job.cluster, *job.cost_model};
  EXPECT_TRUE(evaluate_changes_towards(training, plan.strategy).empty());

  Strategy other = small_strategy();
  other.degrees = {.data = 2, .pipeline = 2, .tensor = 2};
  other.recompute = {RecomputeKind::kFull, 0};
  other.zero = 1;
  const auto changes = evaluate_changes_towards(training, other);
  EXPECT_THAT(changes_of(changes), ElementsAre("parallel sizes", "recomputation", "ZeRO"));
  EXPECT_EQ(changes[0].figures.strategy.degrees, other.degrees);
  EXPECT_EQ(changes[0].figures.strategy.zero, 0);
  EXPECT_EQ(changes[2].figures.strategy.degrees, plan.strategy.degrees);

  // 3 does not divide the 8 heads: this choice alone is not a plan.
  other.degrees.tensor = 3;
  EXPECT_THAT(changes_of(evaluate_changes_towards(training, other)),
              ElementsAre("recomputation", "ZeRO"));
}

EvaluatedNeighbor neighbor(const char* change, std::int64_t time, std::int64_t memory) {
  EvaluatedNeighbor n{.change = change, .figures = {}};
  n.figures.step_time = Ticks(time);
  n.figures.peak_memory = Bytes(memory);
  n.figures.memory_capacity = Bytes(80);
  return n;
}

TEST(Neighbors, MissingMemoryIsWhatExceedsTheCapacity) {
  EXPECT_EQ(missing_memory(neighbor("", 1, 80).figures), Bytes(0));
  EXPECT_EQ(missing_memory(neighbor("", 1, 96).figures), Bytes(16));
}

TEST(Neighbors, TheFastestThatFitsIsFasterThanThePlan) {
  const SmallJob job = small_job(kPlenty);
  const Plan plan;
  const TrainingJob training{plan, job.model, job.cluster, *job.cost_model};
  const std::vector<EvaluatedNeighbor> neighbors{neighbor("slow", 90, 10), neighbor("good", 80, 80),
                                                 neighbor("large", 70, 81)};
  const EvaluatedNeighbor* best = fastest_that_fits(training, neighbors, Ticks(100));
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->change, "good");
  EXPECT_EQ(fastest_that_fits(training, neighbors, Ticks(80)), nullptr);
}

// Full recomputation fits in the memory of its own peak and nothing else that is faster does.
TEST(Neighbors, NameTheFastestChangeThatDoesNotFitAndASecondOneThatHelps) {
  Strategy strategy = small_strategy();
  strategy.degrees = {.data = 8};
  strategy.micro_batch = 2;
  strategy.recompute = {RecomputeKind::kFull, 0};
  const SmallJob plenty = small_job(kPlenty);
  const Bytes needed = peak_memory(plenty.evaluate(plan_of(strategy, plenty)));
  const SmallJob job = small_job(needed);
  const Plan plan = plan_of(strategy, job);
  const TrainingJob training{plan, job.model, job.cluster, *job.cost_model};
  const Evaluation evaluation = job.evaluate(plan);
  const auto neighbors = evaluate_neighbors(training);
  const auto blocked = fastest_that_does_not_fit(training, evaluation, neighbors);
  ASSERT_TRUE(blocked.has_value());
  EXPECT_EQ(blocked->neighbor.change, "--recompute none");
  EXPECT_EQ(
      missing_memory(blocked->neighbor.figures),
      peak_memory(plenty.evaluate(plan_of(blocked->neighbor.figures.strategy, plenty))) - needed);
  for (const ComparedTerm<Bytes>& term : blocked->memory)
    if (term.name == name_of(MemoryClass::kActivations)) {
      EXPECT_GT(term.change(), Bytes(0));
    } else if (term.name == name_of(MemoryClass::kWeights)) {
      EXPECT_EQ(term.change(), Bytes(0));
    }
  ASSERT_TRUE(blocked->remedy.has_value());
  EXPECT_EQ(missing_memory(blocked->remedy->figures), Bytes(0));
  EXPECT_EQ(blocked->remedy->figures.strategy.recompute.kind, RecomputeKind::kNone);
  for (const EvaluatedNeighbor& single : neighbors)
    EXPECT_NE(single.figures.strategy, blocked->remedy->figures.strategy);
}

}  // namespace
}  // namespace meshwright
