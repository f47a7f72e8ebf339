#include "planner/search/trainer_choices.hpp"

#include <algorithm>
#include <string>

#include "core/plan/plan.hpp"

namespace meshwright {

namespace {

/// True if every plan of the search has the same words of this ability.
bool is_fixed(Ability ability, const FixedChoices& fixed) {
  switch (ability) {
    case Ability::kSchedules:
      return fixed.schedule.has_value();
    case Ability::kSequenceParallel:
      return fixed.sequence_parallel.has_value();
    case Ability::kExpertTensor:
      return fixed.expert_tensor && (fixed.tensor || fixed.expert_tensor == 1);
    case Ability::kZero:
      return fixed.zero.has_value();
    case Ability::kRecompute:
    case Ability::kRecomputeModules:
      return fixed.recompute.has_value();
    case Ability::kStageCuts:
      return false;
    case Ability::kDtypes:
      return fixed.dtype.has_value();
    case Ability::kContextAlgorithms:
      return fixed.context_algorithm.has_value();
    case Ability::kParallelism:
    case Ability::kFp8Recipes:
    case Ability::kGradientDtypes:
    case Ability::kDataParallel:
    case Ability::kBuckets:
    case Ability::kAttention:
    case Ability::kRankOrders:
    case Ability::kOptions:
      break;
  }
  return true;
}

}  // namespace

std::vector<Diagnostic> fixed_choice_problems(const FixedChoices& fixed) {
  if (!fixed.trainer) return {};
  std::vector<TrainerGap> gaps = trainer_gaps(
      fixed.trainer->abilities, {.strategy = strategy_of(fixed), .blocks_per_stage = {}});
  std::erase_if(gaps, [&](const TrainerGap& gap) { return !is_fixed(gap.ability, fixed); });
  return problems_of(gaps, fixed.trainer->name);
}

FixedChoices with_attention_of_trainer(FixedChoices fixed) {
  if (fixed.trainer && !fixed.attention &&
      !accepts(fixed.trainer->abilities.any, Ability::kAttention,
               name_of(AttentionAlgorithm::kFlash)))
    fixed.attention = AttentionAlgorithm::kStandard;
  return fixed;
}

bool cuts_freely(const Trainer& trainer) {
  const TrainerAbilities& abilities = trainer.abilities;
  const auto accepts_any = [](const AbilityWords& words) {
    return accepts(words, Ability::kStageCuts, "any");
  };
  return accepts_any(abilities.any) &&
         std::all_of(abilities.with.begin(), abilities.with.end(), accepts_any);
}

std::vector<int> zero_levels_to_search(const FixedChoices& fixed) {
  std::vector<int> levels;
  for (const int level : {0, 1, 2, 3})
    if (!fixed.trainer ||
        accepts(fixed.trainer->abilities.any, Ability::kZero, std::to_string(level)))
      levels.push_back(level);
  return levels;
}

std::vector<BucketRule> bucket_rules_to_search(const FixedChoices& fixed) {
  std::vector<BucketRule> rules;
  for (const BucketRule rule : {BucketRule::kPyTorch, BucketRule::kMegatron})
    if (!fixed.trainer || accepts(fixed.trainer->abilities.any, Ability::kBuckets,
                                  to_text({.rule = rule, .bytes = {}})))
      rules.push_back(rule);
  return rules;
}

}  // namespace meshwright
