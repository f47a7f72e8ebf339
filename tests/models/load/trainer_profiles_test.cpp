/// What trainer profiles say that programs can run: the [abilities] table and the presets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/plan/plan.hpp"
#include "models/launch/launch_text.hpp"
#include "models/load/load.hpp"
#include "models/load/published_runs.hpp"
#include "models/load/trainer_toml.hpp"
#include "tests/complaints.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Trainer read(const std::string& text) {
  return trainer_from_toml(
      {.name = "test", .where = "test.toml", .text = "schema = 1\nname = \"test\"\n" + text});
}
Trainer preset(const std::string& name) { return trainer_from_toml(find_trainer(name)); }

std::string complaint_about(const std::string& text) {
  return complaints_of([&] { read(text); });
}

std::vector<std::string> problems_of(const std::string& trainer, const Plan& plan) {
  std::vector<std::string> texts;
  for (const Diagnostic& problem : trainer_problems(plan, preset(trainer)))
    texts.push_back(problem.what);
  return texts;
}

/// tp 2 with sequence parallelism, pp 4, dp 8.
Plan plan_with(const std::string& schedule, int zero = 0) {
  Plan plan;
  plan.strategy.degrees = {.data = 8, .pipeline = 4, .tensor = 2};
  plan.strategy.sequence_parallel = true;
  plan.strategy.schedule = schedule;
  plan.strategy.zero = zero;
  plan.blocks_per_stage = {2, 2, 2, 2};
  return plan;
}
Plan data_parallel_plan(int zero) {
  Plan plan;
  plan.strategy.degrees.data = 8;
  plan.strategy.zero = zero;
  plan.blocks_per_stage = {8};
  return plan;
}

// ---- the table ----------------------------------------------------------------------------------

TEST(TrainerAbilitiesTable, ReadsEveryWordOfEveryKey) {
  for (int i = 0; i < kAbilityCount; ++i) {
    const auto ability = static_cast<Ability>(i);
    const std::string key(key_of(ability));
    const auto of = [&](const AbilityWords& words) { return words[static_cast<std::size_t>(i)]; };
    EXPECT_EQ(of(read("").abilities.any), std::nullopt) << key;
    EXPECT_THAT(*of(read("[abilities]\n" + key + " = []\n").abilities.any), IsEmpty()) << key;
    for (const std::string& word : words_of(ability)) {
      const std::string line = key + " = [\"" + word + "\"]\n";
      const Trainer trainer =
          read("[abilities]\n" + line + "source = \"s\"\n[abilities.with_expert]\n" + line);
      EXPECT_THAT(*of(trainer.abilities.any), ElementsAre(word)) << key;
      EXPECT_THAT(*of(trainer.abilities.with[static_cast<std::size_t>(Axis::kExpert)]),
                  ElementsAre(word));
      EXPECT_EQ(trainer.sources.at("abilities." + key), "s");
      Trainer again =
          trainer_from_toml({.name = "test", .where = "test.toml", .text = to_toml(trainer)});
      again.sources = trainer.sources;  // not written
      EXPECT_EQ(again, trainer) << key;
    }
  }
}

TEST(TrainerAbilitiesTable, TakesZeroStagesAsNumbers) {
  EXPECT_THAT(
      *read("[abilities]\nzero = [0, 2]\n").abilities.any[static_cast<std::size_t>(Ability::kZero)],
      ElementsAre("0", "2"));
}

TEST(TrainerAbilitiesTable, SuggestsTheNearestKeyAndWord) {
  EXPECT_THAT(complaint_about("[abilities]\nscedules = []\n"),
              HasSubstr("test.toml:4:1: unknown key 'abilities.scedules'\n  hint: did you mean "
                        "'schedules'"));
  EXPECT_THAT(complaint_about("[abilities]\nschedules = [\"1f1c\"]\n"),
              HasSubstr("test.toml:4:14: invalid value \"1f1c\" in 'abilities.schedules'\n  hint: "
                        "did you mean '1f1b'"));
  EXPECT_THAT(complaint_about("[abilities.with_pipline]\nzero = [0]\n"),
              HasSubstr("did you mean 'with_pipeline'"));
  EXPECT_THAT(complaint_about("[abilities]\nzero = [0, 0]\n"),
              HasSubstr("duplicate value 0 in 'abilities.zero'"));
  EXPECT_THAT(complaint_about("[abilities]\nzero = 1\n"),
              HasSubstr("invalid value 1 for 'abilities.zero': expected an array"));
  EXPECT_THAT(complaint_about("[abilities]\nsources.zeor = \"x\"\n"),
              HasSubstr("source of unknown key 'abilities.zeor'"));
  EXPECT_THAT(complaint_about("launch = \"megatrn\"\n"), HasSubstr("did you mean 'megatron'"));
}

TEST(TrainerAbilitiesTable, ReplacesInheritedListsOneByOne) {
  const Trainer base = preset("megatron-core");
  const Trainer trainer = read(
      "extends = \"megatron-core\"\nlaunch = \"none\"\n[abilities]\nzero = [1]\n"
      "[abilities.with_expert]\nzero = [0, 1]\n");
  const auto index = [](auto value) { return static_cast<std::size_t>(value); };
  EXPECT_EQ(base.launch, LaunchTarget::kMegatron);
  EXPECT_EQ(trainer.launch, std::nullopt);
  EXPECT_THAT(*trainer.abilities.any[index(Ability::kZero)], ElementsAre("1"));
  EXPECT_EQ(trainer.abilities.any[index(Ability::kSchedules)],
            base.abilities.any[index(Ability::kSchedules)]);
  const AbilityWords& with = trainer.abilities.with[index(Axis::kExpert)];
  EXPECT_THAT(*with[index(Ability::kZero)], ElementsAre("0", "1"));
  EXPECT_THAT(*with[index(Ability::kSequenceParallel)], ElementsAre("with"));
}

// ---- the presets --------------------------------------------------------------------------------

TEST(TrainerPresets, GiveASourceForEveryAbility) {
  for (const std::string& name : trainer_preset_names()) {
    const Trainer trainer = preset(name);
    const auto expect_sources = [&](const std::string& table, const AbilityWords& words) {
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i]) {
          const std::string key = table + std::string(key_of(static_cast<Ability>(i)));
          EXPECT_TRUE(trainer.sources.contains(key)) << name << " " << key;
        }
    };
    expect_sources("abilities.", trainer.abilities.any);
    for (std::size_t axis = 0; axis < trainer.abilities.with.size(); ++axis)
      expect_sources("abilities.with_" + std::string(parallelism_of(static_cast<Axis>(axis))) + ".",
                     trainer.abilities.with[axis]);
  }
}

TEST(TrainerPresets, OfMegatronCore) {
  EXPECT_THAT(problems_of("megatron-core", plan_with("interleaved-1f1b", 1)), IsEmpty());
  EXPECT_THAT(
      problems_of("megatron-core", plan_with("zb-v")),
      ElementsAre("megatron-core has no schedule 'zb-v'; it has 1f1b and interleaved-1f1b"));
  EXPECT_THAT(problems_of("megatron-core", plan_with("1f1b", 3)),
              ElementsAre("megatron-core has no ZeRO 3 with pipeline parallelism; it has ZeRO 0 "
                          "and 1"));
  EXPECT_THAT(problems_of("megatron-core", data_parallel_plan(3)), IsEmpty());
  Plan experts = plan_with("1f1b", 1);
  experts.strategy.degrees.expert = 4;
  EXPECT_THAT(problems_of("megatron-core", experts), IsEmpty());
  experts.strategy.sequence_parallel = false;
  EXPECT_THAT(problems_of("megatron-core", experts),
              ElementsAre("megatron-core has no tensor parallelism without sequence parallelism "
                          "with expert parallelism"));
}

TEST(TrainerPresets, OfTorchtitan) {
  EXPECT_THAT(problems_of("torchtitan", plan_with("zb-v", 3)), IsEmpty());
  EXPECT_THAT(problems_of("torchtitan", data_parallel_plan(0)), IsEmpty());
  EXPECT_THAT(problems_of("torchtitan", data_parallel_plan(1)),
              ElementsAre("torchtitan has no ZeRO 1; it has ZeRO 0, 2 and 3"));
  EXPECT_THAT(problems_of("torchtitan", plan_with("1f1b", 0)),
              ElementsAre("torchtitan has no ZeRO 0 with tensor parallelism; it has ZeRO 2 and 3"));
  Plan plan = plan_with("1f1b", 2);
  plan.strategy.sequence_parallel = false;
  plan.strategy.recompute = *recompute_from_text("block:1");
  EXPECT_THAT(problems_of("torchtitan", plan),
              ElementsAre("torchtitan has no tensor parallelism without sequence parallelism",
                          "torchtitan has no recomputation 'block'; it has none, full and "
                          "torch-selective"));
}

TEST(TrainerPresets, OfProgramsWithoutPipelinesOrWithoutSharding) {
  EXPECT_THAT(problems_of("llm-foundry", data_parallel_plan(3)), IsEmpty());
  EXPECT_THAT(
      problems_of("llm-foundry", plan_with("1f1b", 3)),
      ElementsAre("llm-foundry has no schedule '1f1b'", "llm-foundry has no tensor parallelism",
                  "llm-foundry has no pipeline parallelism"));
  Plan first = plan_with("1f1b", 1);
  first.strategy.attention = AttentionAlgorithm::kStandard;
  EXPECT_THAT(problems_of("megatron-2022", first), IsEmpty());
  EXPECT_THAT(problems_of("megatron-2021", first),
              ElementsAre("megatron-2021 has no tensor parallelism with sequence parallelism",
                          "megatron-2021 has no ZeRO 1; it has ZeRO 0"));
}

TEST(TrainerPresets, OfDeepSpeedAndInternEvo) {
  Plan plan = plan_with("1f1b", 2);
  plan.strategy.sequence_parallel = false;
  plan.strategy.attention = AttentionAlgorithm::kStandard;
  EXPECT_THAT(problems_of("megatron-deepspeed", plan),
              ElementsAre("megatron-deepspeed has no ZeRO 2 with pipeline parallelism; it has "
                          "ZeRO 0 and 1"));
  EXPECT_THAT(problems_of("internevo", plan),
              ElementsAre("internevo has no ZeRO 2; it has ZeRO 0, 1 and 3"));
  plan.strategy.zero = 3;
  EXPECT_THAT(problems_of("internevo", plan),
              ElementsAre("internevo has no ZeRO 3 with pipeline parallelism; it has ZeRO 0 and "
                          "1"));
}

/// One change of a plan each: every word of a choice that launch_text() knows.
std::vector<Plan> variations_of(const Plan& plan) {
  std::vector<Plan> plans;
  const auto vary = [&](const auto& change) {
    plans.push_back(plan);
    change(plans.back(), plans.back().strategy);
  };
  for (const char* schedule : {"gpipe", "interleaved-1f1b", "breadth-first", "zb-h1", "zb-v"})
    vary([&](Plan&, Strategy& s) { s.schedule = schedule; });
  for (const int zero : {0, 1, 2, 3}) vary([&](Plan&, Strategy& s) { s.zero = zero; });
  for (const char* text : {"none", "selective", "full", "block:1", "block:1,2,1,0",
                           "modules:layernorm", "torch-selective"})
    vary([&](Plan&, Strategy& s) { s.recompute = *recompute_from_text(text); });
  for (int d = 0; d < kDtypeCount; ++d)
    vary([&](Plan&, Strategy& s) { s.dtype = static_cast<Dtype>(d); });
  for (const char* text : {"pytorch", "megatron", "25MiB"})
    vary([&](Plan&, Strategy& s) { s.data_parallelism.buckets = *buckets_from_text(text); });
  for (const char* text : {"tp-cp-ep-pp-dp", "cp-tp-ep-dp-pp"})
    vary([&](Plan&, Strategy& s) { s.model_parallelism.order = *rank_order_from_text(text); });
  vary([](Plan&, Strategy& s) { s.sequence_parallel = false; });
  vary([](Plan&, Strategy& s) { s.sequence_parallel = false, s.degrees.expert = 4; });
  vary([](Plan&, Strategy& s) { s.attention = AttentionAlgorithm::kStandard; });
  vary([](Plan&, Strategy& s) { s.model_parallelism.routing.fp8_dispatch = true; });
  vary([](Plan&, Strategy& s) { s.model_parallelism.routing.capacity = 1.5; });
  vary([](Plan&, Strategy& s) { s.data_parallelism.offload_optimizer = true; });
  vary([](Plan&, Strategy& s) { s.zero = 3, s.data_parallelism.prefetch = 4; });
  vary([](Plan&, Strategy& s) { s.zero = 3, s.data_parallelism.reshard_after_forward = false; });
  vary([](Plan& p, Strategy&) { p.blocks_per_stage = {1, 2, 2, 3}; });
  vary([](Plan& p, Strategy&) { p.device_of_stage = {0, 1, 2, 3}; });
  return plans;
}

// Launch options never leave out silently what the program cannot run.
TEST(TrainerPresets, AgreeWithTheirLaunchText) {
  for (const std::string name : {"megatron-core", "torchtitan", "megatron-deepspeed"}) {
    const Trainer trainer = preset(name);
    for (const Plan& plan : variations_of(plan_with("1f1b", 1))) {
      const std::vector<TrainerGap> gaps = trainer_gaps(trainer.abilities, plan);
      if (!gaps.empty()) {
        EXPECT_FALSE(launch_text(*trainer.launch, plan).unsupported.empty())
            << name << " has " << missing_text(gaps);
      }
    }
  }
}

TEST(TrainerPresets, RunEverythingInTheIdealProgram) {
  EXPECT_EQ(preset("ideal").abilities, TrainerAbilities{});
  EXPECT_EQ(preset("ideal").launch, std::nullopt);
}

/// Choices of published sets that describe something other than the plan of the named program.
bool is_stand_in(const std::string& set, Ability ability) {
  return (set == "internevo" && ability == Ability::kBuckets) ||    // its size is assumed
         (set == "nemo-automodel" && ability == Ability::kZero) ||  // FSDP2, at costs of nemo
         (set == "torchtitan" && ability == Ability::kFp8Recipes);  // not stated, or row-wise
}

// What was measured can be run. Absent blocks per stage are chosen by the program.
TEST(TrainerPresets, CanRunEveryPublishedRunOfTheirPrograms) {
  for (const std::string& name : published_set_names()) {
    const PublishedSet set = published_set_from_toml(find_published_set(name));
    for (const PublishedRun& run : set.runs) {
      const Plan plan{run.strategy, run.blocks_per_stage};
      std::vector<TrainerGap> gaps = trainer_gaps(preset(run.trainer).abilities, plan);
      std::erase_if(gaps, [&](const TrainerGap& gap) { return is_stand_in(name, gap.ability); });
      for (const TrainerGap& gap : gaps)
        ADD_FAILURE() << name << "#" << run.id << ": " << missing_text({&gap, 1});
    }
  }
}

}  // namespace
}  // namespace meshwright
