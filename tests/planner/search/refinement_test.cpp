#include "planner/search/refinement.hpp"

#include <gtest/gtest.h>

#include "core/trainer/trainer_abilities.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "planner/search/neighbors.hpp"
#include "planner/search/search.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

SearchResult search_with(const SmallJob& small, bool refines) {
  return search(small.model, small.cluster, *small.cost_model, small.goal, small.fixed,
                {.top = 1, .threads = 2, .refines = refines});
}
Ticks step_of(const SearchResult& result) { return result.plans.front().evaluation.step_time; }

/// Short steps in which the warm-up of the pipeline matters: a synthesized order gains.
SmallJob job_of_short_steps() {
  SmallJob small(small_dense_model(), kPlenty,
                 {.gpus = 16, .global_batch = 16, .sequence_length = 512});
  small.fixed.tensor = small.fixed.context = 1;
  small.fixed.pipeline = 2;
  return small;
}

TEST(Refinement, MakesPlan1FasterAndSaysHow) {
  const SmallJob small = job_of_short_steps();
  const SearchResult searched = search_with(small, false), refined = search_with(small, true);
  EXPECT_TRUE(searched.certificate.refined_by.empty());
  ASSERT_FALSE(refined.certificate.refined_by.empty());
  EXPECT_LT(step_of(refined), step_of(searched));
  EXPECT_TRUE(check_plan(refined.plans.front().plan, small.model, small.cluster).empty());
  EXPECT_EQ(refined.certificate.candidates, searched.certificate.candidates);
}

/// 96 stages: an order of 768 actions or more.
SearchResult result_of_96_stages(std::int64_t microbatches) {
  SmallJob job(model_from_config(find_model("gpt3-175b")),
               cluster_from_toml(find_cluster("nd-h100-v5")),
               {.gpus = 512, .global_batch = microbatches, .sequence_length = 2048});
  job.fixed.tensor = 8;
  job.fixed.context = 4;
  job.fixed.pipeline = 16;
  job.fixed.chunks = 6;
  job.fixed.micro_batch = 1;
  job.fixed.recompute = Recompute{};
  return search_with(job, true);
}

// With half as many micro-batches as pipeline ranks, the bubble is most of the step.
TEST(Refinement, SynthesizesALongOrderIfItGainsMuch) {
  EXPECT_EQ(result_of_96_stages(8).plans.front().plan.strategy.schedule, kSynthesizedSchedule);
  EXPECT_NE(result_of_96_stages(80).plans.front().plan.strategy.schedule, kSynthesizedSchedule);
}

TEST(Refinement, KeepsFixedChoices) {
  SmallJob small = job_of_short_steps();
  small.fixed.schedule = "1f1b";
  small.fixed.zero = 1;
  small.fixed.shard_ranks = 0;
  const Strategy strategy = search_with(small, true).plans.front().plan.strategy;
  EXPECT_EQ(strategy, with_fixed_choices(strategy, small.fixed));
}

// torchtitan has no synthesized orders.
TEST(Refinement, KeepsToWhatTheTrainerCanRun) {
  SmallJob small = job_of_short_steps();
  small.fixed.trainer = trainer_from_toml(find_trainer("torchtitan"));
  const Plan plan = search_with(small, true).plans.front().plan;
  EXPECT_TRUE(can_run(small.fixed.trainer->abilities, plan));
}

// Stopped after the first plan, the search has proved nothing: every change is tried.
TEST(Refinement, ImprovesTheBestPlanOfAnUnfinishedSearch) {
  SmallJob small = job_of_short_steps();
  small.fixed.schedule = "1f1b";  // no synthesized order
  const auto stopped = [&](bool refines) {
    return search(
        small.model, small.cluster, *small.cost_model, small.goal, small.fixed,
        {.top = 1, .threads = 1, .is_out_of_time = [] { return true; }, .refines = refines});
  };
  const SearchResult first = stopped(false), refined = stopped(true);
  ASSERT_GT(first.certificate.gap, 0);
  EXPECT_LT(step_of(refined), step_of(first));
}

TEST(Refinement, LeavesNoFasterSingleChange) {
  for (const ModelGraph& model : {small_dense_model(), small_expert_model()}) {
    const SmallJob small(model, kPlenty, kSmallGoal);
    const SearchResult result = search_with(small, true);
    ASSERT_TRUE(result.certificate.proved_optimal);
    const RankedPlan& best = result.plans.front();
    const auto limit = static_cast<double>(best.evaluation.step_time.value) * (1 - kWorthwhileGain);
    for (const EvaluatedNeighbor& neighbor :
         evaluate_neighbors({best.plan, small.model, small.cluster, *small.cost_model})) {
      if (missing_memory(neighbor.figures) > Bytes(0)) continue;
      EXPECT_GE(static_cast<double>(neighbor.figures.step_time.value), limit) << neighbor.change;
    }
  }
}

}  // namespace
}  // namespace meshwright
