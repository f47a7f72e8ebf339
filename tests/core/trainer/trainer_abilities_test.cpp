#include "core/trainer/trainer_abilities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/plan/plan.hpp"
#include "core/trainer/trainer.hpp"
#include "tests/values_of.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string>& accepted(AbilityWords& words, Ability ability) {
  auto& of = words[static_cast<std::size_t>(ability)];
  if (!of) of.emplace();
  return *of;
}

/// tp 2 with sequence parallelism, pp 4, dp 2, 1F1B, ZeRO 1, equal stages.
Plan plain_plan() {
  Plan plan;
  plan.strategy.degrees = {.data = 2, .pipeline = 4, .tensor = 2};
  plan.strategy.sequence_parallel = true;
  plan.strategy.zero = 1;
  plan.blocks_per_stage = {2, 2, 2, 2};
  return plan;
}

Trainer trainer_named(const char* name) {
  Trainer trainer;
  trainer.name = name;
  return trainer;
}

std::vector<std::string> whats(const std::vector<Diagnostic>& problems) {
  return values_of(problems, &Diagnostic::what);
}

TEST(TrainerAbilities, WithoutListsAcceptEveryPlan) {
  Plan plan = plain_plan();
  plan.strategy.schedule = "zb-v";
  plan.strategy.zero = 3;
  plan.strategy.dtype = Dtype::kNvfp4;
  plan.device_of_stage = {0, 1, 2, 3};
  EXPECT_TRUE(can_run(TrainerAbilities{}, plan));
  EXPECT_THAT(trainer_problems(plan, Trainer{}), IsEmpty());
}

TEST(TrainerAbilities, NameTheScheduleThatIsMissingAndThoseThereAre) {
  Trainer trainer = trainer_named("megatron-core");
  accepted(trainer.abilities.any, Ability::kSchedules) = {"1f1b", "interleaved-1f1b"};
  Plan plan = plain_plan();
  EXPECT_THAT(trainer_problems(plan, trainer), IsEmpty());
  plan.strategy.schedule = "zb-v";
  const Diagnostic flag{
      .where = "--schedule",
      .what = "megatron-core has no schedule 'zb-v'; it has 1f1b and interleaved-1f1b",
      .hint = "use one of these with --schedule, or choose another --trainer"};
  EXPECT_THAT(trainer_problems(plan, trainer), ElementsAre(flag));
  EXPECT_EQ(trainer_problems(plan, trainer, "x.plan.json#/").front().where,
            "x.plan.json#/strategy/schedule");
}

// 1F1B without a pipeline is gradient accumulation, which every program has.
TEST(TrainerAbilities, NeedNoScheduleWithoutAPipeline) {
  Trainer trainer = trainer_named("llm-foundry");
  accepted(trainer.abilities.any, Ability::kSchedules) = {};
  accepted(trainer.abilities.any, Ability::kParallelism) = {};
  Plan plan;
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.strategy.degrees.pipeline = 2;
  EXPECT_THAT(
      whats(trainer_problems(plan, trainer)),
      ElementsAre("llm-foundry has no schedule '1f1b'", "llm-foundry has no pipeline parallelism"));
  EXPECT_EQ(trainer_problems(plan, trainer)[1].where, "--pp");
  EXPECT_EQ(trainer_problems(plan, trainer)[1].hint, "set --pp to 1, or choose another --trainer");
}

TEST(TrainerAbilities, RestrictFurtherWithAnAxis) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.with[static_cast<std::size_t>(Axis::kPipeline)], Ability::kZero) = {
      "0", "1"};
  Plan plan = plain_plan();
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.strategy.zero = 2;
  EXPECT_FALSE(can_run(trainer.abilities, plan));
  EXPECT_THAT(whats(trainer_problems(plan, trainer)),
              ElementsAre("mine has no ZeRO 2 with pipeline parallelism; it has ZeRO 0 and 1"));
  plan.strategy.degrees.pipeline = 1;
  EXPECT_TRUE(can_run(trainer.abilities, plan));
}

TEST(TrainerAbilities, NeedNoZeroLevelForASingleReplica) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.any, Ability::kZero) = {"2", "3"};
  Plan plan;
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.strategy.degrees.context = 2;  // context ranks share parameters too
  EXPECT_FALSE(can_run(trainer.abilities, plan));
  plan.strategy.zero = 3;
  EXPECT_TRUE(can_run(trainer.abilities, plan));
}

// Equal: 2 2 2 2; balanced: at most one more than another; any: 1 2 2 3.
TEST(TrainerAbilities, TellHowEvenlyStagesAreCut) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.any, Ability::kStageCuts) = {"equal", "balanced"};
  Plan plan = plain_plan();
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.blocks_per_stage = {2, 3, 2, 2};
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.blocks_per_stage = {1, 2, 2, 3};
  EXPECT_THAT(whats(trainer_problems(plan, trainer)),
              ElementsAre("mine has no uneven stages; it has equal and balanced stages"));
}

TEST(TrainerAbilities, DistinguishBlockCountsFromListsOfThem) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.any, Ability::kRecompute) = {"none", "block"};
  Plan plan = plain_plan();
  plan.strategy.recompute = *recompute_from_text("block:2");
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.strategy.recompute = *recompute_from_text("block:2,1,1,0");
  EXPECT_THAT(whats(trainer_problems(plan, trainer)),
              ElementsAre("mine has no recomputation 'block-list'; it has none and block"));
}

TEST(TrainerAbilities, ListEveryUnsupportedOption) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.any, Ability::kOptions) = {"shard-ranks"};
  Plan plan = plain_plan();
  plan.strategy.data_parallelism.shard_ranks = 2;
  plan.strategy.data_parallelism.overlap_gather = true;
  plan.strategy.model_parallelism.tensor_overlap = true;
  EXPECT_THAT(
      whats(trainer_problems(plan, trainer)),
      ElementsAre("mine has no option --overlap-gather", "mine has no option --tp-comm-overlap"));
  EXPECT_EQ(trainer_problems(plan, trainer)[0].hint,
            "remove --overlap-gather, or choose another --trainer");
}

TEST(TrainerAbilities, ShowSizesAndRankOrdersAsTheyWereGiven) {
  Trainer trainer = trainer_named("mine");
  accepted(trainer.abilities.any, Ability::kExpertTensor) = {"1", "tp"};
  accepted(trainer.abilities.any, Ability::kRankOrders) = {"tp-cp-ep-pp-dp"};
  Plan plan;
  plan.strategy.degrees = {.data = 8, .tensor = 4, .expert = 4, .expert_tensor = 2};
  plan.strategy.model_parallelism.order = *rank_order_from_text("tp-cp-ep-pp-dp");
  EXPECT_THAT(whats(trainer_problems(plan, trainer)),
              ElementsAre("mine has no expert-tensor-parallel size 2; it has 1 and tp"));
  plan.strategy.degrees.expert_tensor = 4;
  EXPECT_TRUE(can_run(trainer.abilities, plan));
  plan.strategy.model_parallelism.order = *rank_order_from_text("cp-tp-ep-dp-pp");
  EXPECT_THAT(whats(trainer_problems(plan, trainer)),
              ElementsAre("mine has no rank order cp-tp-ep-dp-pp; it has tp-cp-ep-pp-dp"));
}

TEST(TrainerAbilities, SumUpWhatSeveralPlansMiss) {
  const auto gap = [](Ability ability, const char* word, std::optional<Axis> with = {}) {
    return TrainerGap{
        .ability = ability, .word = word, .shown = word, .with = with, .accepted = {}};
  };
  const TrainerGap v = gap(Ability::kSchedules, "zb-v");
  EXPECT_EQ(missing_text(std::vector{v}), "no schedule 'zb-v'");
  EXPECT_EQ(missing_text(std::vector{gap(Ability::kZero, "2", Axis::kPipeline), v,
                                     gap(Ability::kSchedules, "dualpipe"), v}),
            "no schedules zb-v and dualpipe and no ZeRO 2 with pipeline parallelism");
}

TEST(TrainerAbilities, HaveDistinctKeysAndWords) {
  std::set<std::string_view> keys;
  for (int i = 0; i < kAbilityCount; ++i) {
    const auto ability = static_cast<Ability>(i);
    EXPECT_TRUE(keys.insert(key_of(ability)).second) << key_of(ability);
    const std::vector<std::string> words = words_of(ability);
    EXPECT_FALSE(words.empty()) << key_of(ability);
    EXPECT_EQ(std::set<std::string>(words.begin(), words.end()).size(), words.size());
  }
}

}  // namespace
}  // namespace meshwright
