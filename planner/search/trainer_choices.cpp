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
    case Ability::kParallelism:
    case Ability::kContextAlgorithms:
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

/// A plan with the fixed choices and otherwise the fewest demands.
Plan probe_of(const FixedChoices& fixed) {
  Plan probe;
  probe.strategy.degrees = degrees_of(fixed);
  probe.strategy.sequence_parallel = fixed.sequence_parallel.value_or(false);
  probe.strategy.schedule = fixed.schedule.value_or(std::string(kDefaultSchedule));
  probe.strategy.recompute = fixed.recompute.value_or(Recompute{});
  probe.strategy.zero = fixed.zero.value_or(0);
  probe.strategy.dtype = fixed.dtype.value_or(Dtype::kBf16);
  probe.strategy.attention = fixed.attention.value_or(AttentionAlgorithm::kFlash);
  probe.strategy.data_parallelism = fixed.data_parallelism;
  probe.strategy.model_parallelism = fixed.model_parallelism;
  probe.strategy.precision = fixed.precision;
  return probe;
}

}  // namespace

std::vector<Diagnostic> fixed_choice_problems(const FixedChoices& fixed) {
  if (!fixed.trainer) return {};
  std::vector<TrainerGap> gaps = trainer_gaps(fixed.trainer->abilities, probe_of(fixed));
  std::erase_if(gaps, [&](const TrainerGap& gap) { return !is_fixed(gap.ability, fixed); });
  return problems_of(gaps, fixed.trainer->name);
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
  if (!fixed.trainer || accepts(fixed.trainer->abilities.any, Ability::kZero, "1")) return {0, 1};
  std::vector<int> levels{0};
  for (const int level : {2, 3})
    if (accepts(fixed.trainer->abilities.any, Ability::kZero, std::to_string(level)))
      levels.push_back(level);
  return levels;
}

bool lacks_block_counts(const Trainer& trainer) {
  const auto has = [&](const char* word) {
    return accepts(trainer.abilities.any, Ability::kRecompute, word);
  };
  return has("torch-selective") && !has("block");
}

}  // namespace meshwright
