/// Searches restricted to what a training program can run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/load/trainer_toml.hpp"
#include "planner/search/candidate_costs.hpp"
#include "planner/search/memory_screen.hpp"
#include "planner/search/trainer_choices.hpp"
#include "tests/complaints.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;

Trainer preset(const std::string& name) { return trainer_from_toml(find_trainer(name)); }

FixedChoices choices_for(const std::string& name) {
  FixedChoices fixed;
  fixed.trainer = preset(name);
  return with_attention_of_trainer(fixed);
}

class TrainerSearch : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  SmallJob small_job() const {
    const auto& [name, experts] = GetParam();
    SmallJob small(experts ? small_expert_model() : small_dense_model(), kPlenty, kSmallGoal);
    small.fixed = choices_for(name);
    return small;
  }
};
INSTANTIATE_TEST_SUITE_P(Profiles, TrainerSearch,
                         testing::Combine(testing::Values("megatron-core", "torchtitan",
                                                          "megatron-2021", "megatron-2023",
                                                          "megatron-deepspeed", "internevo",
                                                          "llm-foundry", "ideal"),
                                          testing::Bool()),
                         [](const auto& each) {
                           std::string name = std::get<0>(each.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(each.param) ? "_experts" : "_dense");
                         });

TEST(TrainerSearchDefaults, HaveTheAttentionOfTheTrainer) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.trainer = preset("megatron-deepspeed");  // has no flash attention
  const SearchResult result = small.search({.top = 1, .threads = 1});
  ASSERT_FALSE(result.plans.empty());
  EXPECT_EQ(result.plans.front().plan.strategy.attention, AttentionAlgorithm::kStandard);
  small.fixed.attention = AttentionAlgorithm::kFlash;
  EXPECT_THAT(diagnostics_of([&] { small.search(); }).front().what,
              HasSubstr("has no flash attention"));
}

TEST_P(TrainerSearch, FindsOnlyPlansThatTheTrainerCanRun) {
  const SmallJob small = small_job();
  const SearchResult result = small.search({.top = 20, .threads = 2});
  ASSERT_FALSE(result.plans.empty());
  // The search for 20 rows may stop early, but not before plan 1 is proved optimal.
  EXPECT_EQ(result.certificate.gap, 0);
  const SearchResult best = small.search({.top = 1, .threads = 2});
  EXPECT_TRUE(best.certificate.proved_optimal);
  EXPECT_EQ(result.plans.front().evaluation.step_time, best.plans.front().evaluation.step_time);
  for (const RankedPlan& row : result.plans) {
    EXPECT_TRUE(check_plan(row.plan, small.model, small.cluster).empty());
    for (const Diagnostic& problem : trainer_problems(row.plan, *small.fixed.trainer))
      ADD_FAILURE() << problem.what;
  }
}

TEST_P(TrainerSearch, AccountsForEveryCandidate) {
  const SearchCertificate certificate = small_job().search({.top = 3, .threads = 2}).certificate;
  std::int64_t counted = certificate.simulated;
  for (const std::int64_t count : certificate.pruned) counted += count;
  EXPECT_EQ(counted, certificate.candidates);
  const bool is_restricted = std::get<0>(GetParam()) != "ideal";
  EXPECT_EQ(certificate.pruned[static_cast<std::size_t>(PruneReason::kTrainer)] > 0, is_restricted);
}

/// Simulates candidates of the unrestricted space that the trainer can run, without bounds.
std::optional<Ticks> fastest_runnable(const SmallJob& small, const Trainer& trainer) {
  const SearchJob job = small.job();
  CandidateCosts costs(job);
  std::optional<Ticks> fastest;
  for (Candidate candidate : small.candidates()) {
    Recompute& recompute = candidate.recompute;
    if (recompute.kind == RecomputeKind::kBlocks) recompute.blocks = 1;
    const Plan plan = costs.plan_of(candidate);
    if (!trainer_problems(plan, trainer).empty()) continue;
    const Evaluation evaluation = small.evaluate(plan);
    if (fits_in_memory(evaluation) && (!fastest || evaluation.step_time < *fastest))
      fastest = evaluation.step_time;
  }
  return fastest;
}

// A profile with any stage cut: its space is a part of the unrestricted one.
TEST(TrainerSearchSpace, HasTheFastestPlanOfTheRunnablePartOfTheWholeSpace) {
  for (const bool experts : {false, true}) {
    SmallJob small(experts ? small_expert_model() : small_dense_model(), kPlenty, kSmallGoal);
    small.fixed.micro_batch = 2;
    small.fixed.context = 1;
    small.fixed.expert_tensor = 1;
    small.fixed.tensor_overlap = false;
    small.fixed.recompute = Recompute{};
    const Trainer trainer = preset("megatron-core");
    const std::optional<Ticks> fastest = fastest_runnable(small, trainer);
    small.fixed.trainer = trainer;
    const SearchResult restricted = small.search({.top = 1, .threads = 2});
    ASSERT_TRUE(fastest.has_value());
    ASSERT_EQ(restricted.plans.size(), 1u);
    EXPECT_EQ(restricted.plans.front().evaluation.step_time, *fastest);
  }
}

TEST(TrainerSearchSpace, IsTheWholeSpaceForAProgramWithoutLimits) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  const auto count = [&] { return small.space().candidates().size(); };
  const std::size_t all = count();
  small.fixed.trainer = preset("ideal");
  EXPECT_EQ(count(), all);
}

TEST(TrainerSearchSpace, HasTheRecomputationOfTheProgram) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.attention = AttentionAlgorithm::kStandard;
  Trainer trainer;
  trainer.abilities.any[static_cast<std::size_t>(Ability::kRecompute)] = {"selective", "full",
                                                                          "torch-selective"};
  small.fixed.trainer = trainer;
  std::set<RecomputeKind> kinds;
  for (const Recompute& recompute : small.space().recomputes) kinds.insert(recompute.kind);
  EXPECT_EQ(kinds, (std::set{RecomputeKind::kSelective, RecomputeKind::kFull,
                             RecomputeKind::kTorchSelective}));
}

TEST(TrainerSearchSpace, HasTheZeroStagesOfTheProgram) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.trainer = preset("torchtitan");
  bool has_three = false;
  for (const std::vector<Replication>& replications : small.space().replication_lists)
    for (const Replication& replication : replications) {
      has_three |= replication.zero == 3;
      EXPECT_NE(replication.zero, 1);
    }
  EXPECT_TRUE(has_three);
}

TEST(TrainerSearchSpace, RefusesFixedChoicesThatTheTrainerLacks) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.trainer = preset("megatron-core");
  small.fixed.schedule = "zb-v";
  small.fixed.recompute = *recompute_from_text("torch-selective");
  const auto found = diagnostics_of([&] { small.search(); });
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, "--schedule");
  EXPECT_EQ(found[1].where, "--recompute");
  small.fixed.recompute.reset();
  small.fixed.schedule = "auto";
  EXPECT_THROW(small.search(), InputError);
}

TEST(TrainerSearchSpace, JudgesOnlyWhatIsFixed) {
  FixedChoices fixed;
  fixed.trainer = preset("torchtitan");
  fixed.tensor = 2;
  fixed.data = 4;
  EXPECT_TRUE(fixed_choice_problems(fixed).empty());  // ZeRO and sequence parallelism are open
  fixed.sequence_parallel = false;
  fixed.zero = 0;
  EXPECT_EQ(fixed_choice_problems(fixed).size(), 2u);
}

TEST(TrainerSearchSpace, SaysWhatTheTrainerLacksIfNothingIsLeft) {
  SmallJob small(small_dense_model(), kPlenty, kSmallGoal);
  small.fixed.trainer = preset("llm-foundry");
  small.fixed.data = 4;  // 8 devices need another axis
  const SearchResult result = small.search();
  EXPECT_TRUE(result.plans.empty());
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_THAT(result.infeasible->reason, HasSubstr("llm-foundry has no"));
}

}  // namespace
}  // namespace meshwright
