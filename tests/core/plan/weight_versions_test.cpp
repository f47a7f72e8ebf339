#include "core/plan/weight_versions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/lowering/lower.hpp"
#include "tests/complaints.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using namespace testing_models;

Strategy strategy_of(std::string_view schedule, int stages, int microbatches, int replicas = 1) {
  Strategy s;
  s.degrees.pipeline = stages;
  s.degrees.data = replicas;
  s.global_batch = std::int64_t{microbatches} * replicas;
  s.sequence_length = 128;
  s.schedule = schedule;
  return s;
}

std::vector<int> versions_met(const WeightVersions& versions, int microbatches) {
  std::vector<int> met;
  for (int k = 0; k < microbatches; ++k) met.push_back(versions.version_for(k));
  return met;
}

// Four stages: stage s is p - 1 - s = 3, 2, 1, 0 updates behind, one update a micro-batch.
TEST(PipeDream, MeetsTheNewestWeightsOfEveryStage) {
  const Strategy s = strategy_of("pipedream", 4, 2);
  const auto of = [&](int stage) { return weight_versions_of(s, PipelineRankId(stage)); };
  EXPECT_THAT(versions_met(of(0), 7), ElementsAre(0, 0, 0, 0, 1, 2, 3));
  EXPECT_THAT(versions_met(of(1), 7), ElementsAre(0, 0, 0, 1, 2, 3, 4));
  EXPECT_THAT(versions_met(of(3), 7), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(of(0).held, 4);  // a step of two does not fill the pipeline, but the next one does
  EXPECT_EQ(of(3).held, 1);
  EXPECT_TRUE(of(2).completes_batch(0));
}

// Steps of three: W(0) for the first two, then one behind, on all stages alike.
TEST(PipeDream2bw, MeetsWeightsThatAreOneStepOld) {
  const Strategy s = strategy_of("pipedream-2bw", 3, 3);
  for (int stage = 0; stage < 3; ++stage) {
    const WeightVersions versions = weight_versions_of(s, PipelineRankId(stage));
    EXPECT_EQ(versions.held, 2);
    EXPECT_THAT(versions_met(versions, 12), ElementsAre(0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2));
    EXPECT_FALSE(versions.completes_batch(4));
    EXPECT_TRUE(versions.completes_batch(5));
  }
}

/// One rank's passes and updates, in their order.
class Replay {
 public:
  Replay(const WeightVersions& versions, bool meets_newest)
      : versions_(versions), meets_newest_(meets_newest) {}

  void take(const Task& task) {
    const int k = task.microbatch;
    if (task.kind == TaskKind::kForward) {
      ASSERT_LE(versions_.version_for(k), updates_) << "forward " << k;
      if (meets_newest_) {
        ASSERT_EQ(versions_.version_for(k), updates_) << "forward " << k;
      }
      in_flight_.insert(k);
    } else if (task.kind == TaskKind::kBackward) {
      in_flight_.erase(k);
    } else if (task.kind == TaskKind::kOptimizer) {
      ASSERT_EQ(versions_.batch_of(k), updates_);
      ++updates_;
      const int overwritten = updates_ - versions_.held;
      for (const int other : in_flight_)
        ASSERT_GT(versions_.version_for(other), overwritten) << "micro-batch " << other;
      ASSERT_GT(versions_.version_for(k + 1), overwritten);
    }
  }
  int updates() const { return updates_; }

 private:
  WeightVersions versions_;
  bool meets_newest_;
  std::set<int> in_flight_;
  int updates_ = 0;
};

// In every order that lower() produces, a micro-batch finds its weight version (with PipeDream the
// newest one), and no update overwrites a version that is still needed.
TEST(WithoutFlush, OverwritesNoVersionThatIsNeeded) {
  const Cluster cluster = cluster_of(1, 8);
  for (const char* schedule : {"pipedream", "pipedream-2bw"})
    for (int p = 1; p <= 8; ++p)
      for (int m = 1; m <= 9; ++m) {
        const bool is_pipedream = std::string_view(schedule) == "pipedream";
        if (!is_pipedream && m < p) continue;
        SCOPED_TRACE(testing::Message() << schedule << " p=" << p << " m=" << m);
        const Strategy s = strategy_of(schedule, p, m);
        const TaskGraph graph = lower(even_plan(s, 8, p), gpt({.blocks = 8}), cluster);
        ASSERT_THAT(check_task_graph(graph), IsEmpty());
        std::vector<Replay> ranks;
        for (int d = 0; d < p; ++d)
          ranks.emplace_back(weight_versions_of(s, PipelineRankId(d)), is_pipedream);
        for (const Task& task : graph.tasks) {
          ranks[static_cast<std::size_t>(task.rank)].take(task);
          if (HasFatalFailure()) return;
        }
        const int updates = steady_window(s).steps * (is_pipedream ? m : 1);
        for (const Replay& rank : ranks) EXPECT_EQ(rank.updates(), updates);
      }
}

TEST(WithoutFlush, IsTheSameGraphForRepresentativesAndForAllRanks) {
  const Strategy s = strategy_of("pipedream", 4, 4, 2);
  const Plan plan = even_plan(s, 8, 4);
  const TaskGraph folded = lower(plan, gpt({.blocks = 8}), cluster_of(2, 4), {.steps = 2});
  const TaskGraph all =
      lower(plan, gpt({.blocks = 8}), cluster_of(2, 4), {.ranks = RankSet::kAll, .steps = 2});
  EXPECT_THAT(check_task_graph(all), IsEmpty());
  EXPECT_EQ(all.tasks.size(), 2 * folded.tasks.size());
  // Two steps of four micro-batches on four stages, each with its own reduction over the replicas.
  EXPECT_THAT(folded.collectives, SizeIs(2 * 4 * 4));
}

// ---- what cannot be combined ----

std::vector<Diagnostic> problems(const std::function<void(Plan&)>& change, bool tied = false) {
  Plan plan = even_plan(strategy_of("pipedream", 2, 4, 2), 8, 2);
  change(plan);
  return check_plan(plan, gpt({.blocks = 8, .tied = tied}), cluster_of(4, 4));
}

Diagnostic problem(const std::function<void(Plan&)>& change, bool tied = false) {
  const std::vector<Diagnostic> found = problems(change, tied);
  EXPECT_THAT(found, SizeIs(1));
  return found.empty() ? Diagnostic() : found.front();
}

TEST(WithoutFlush, RunsOverStagesReplicasAndPartsOfTheSequence) {
  EXPECT_THAT(problems([](Plan&) {}), IsEmpty());
  EXPECT_THAT(problems([](Plan& p) { p.strategy.degrees.context = 2; }), IsEmpty());
  EXPECT_THAT(problems([](Plan& p) { p.strategy.data_parallelism.kind = DataParallelKind::kRing; }),
              IsEmpty());
}

TEST(WithoutFlush, SaysWhatItDoesNotGoWith) {
  EXPECT_EQ(problem([](Plan& p) { p.strategy.zero = 2; }),
            (Diagnostic{"--zero", "must be 0 with schedule 'pipedream', got 2",
                        "use --zero 0: weight versions are not sharded"}));
  EXPECT_EQ(problem([](Plan& p) { p.strategy.degrees.tensor = 2; }),
            (Diagnostic{"--tp", "must be 1 with schedule 'pipedream', got 2",
                        "use --tp 1, or --schedule 1f1b"}));
  EXPECT_EQ(problem([](Plan& p) {
              p.strategy.data_parallelism.buckets.rule = BucketRule::kPyTorch;
            }).where,
            "--bucket");
  EXPECT_EQ(problem([](Plan& p) { p.orders.resize(2); }),
            (Diagnostic{"--schedule", "'pipedream' does not support synthesized orders",
                        "remove the orders"}));
  EXPECT_EQ(problem([](Plan& p) { p.strategy.degrees.chunks = 2; }).where, "--schedule");
  EXPECT_EQ(problem([](Plan& p) {
              p.strategy.schedule = "pipedream-2bw";
              p.strategy.global_batch = 2;
            }).what,
            "pipedream-2bw: requires at least 2 micro-batches (one per device), got 1");
}

TEST(WithoutFlush, SharesNoTableBetweenItsEnds) {
  const Diagnostic d = problem([](Plan&) {}, /*tied=*/true);
  EXPECT_EQ(d.where, "--schedule");
  EXPECT_THAT(d.what, testing::HasSubstr("tied embeddings are shared by the first and the last"));
  const auto alone = [](Plan& p) {
    p.strategy.degrees.pipeline = 1;
    p.blocks_per_stage = {8};
  };
  EXPECT_THAT(problems(alone, /*tied=*/true), IsEmpty());
}

TEST(WithoutFlush, HasNoExperts) {
  const Plan plan = even_plan(strategy_of("pipedream", 2, 4), 4, 2);
  const auto found = check_plan(plan, mixture(4), cluster_of(1, 4));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].what, testing::HasSubstr("has experts"));
}

TEST(WithoutFlush, RefusesMoreStepsThanCanBeOrdered) {
  const Plan plan = even_plan(strategy_of("pipedream", 4, 64), 8, 4);
  const auto found = diagnostics_of(
      [&] { lower(plan, gpt({.blocks = 8}), cluster_of(1, 4), {.steps = 1'000'000'000}); });
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].where, "--steps");
}

}  // namespace
}  // namespace meshwright
