#include "core/trainer/trainer_abilities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/plan/parallel_sizes.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/plan_fields.hpp"
#include "core/trainer/trainer.hpp"

namespace meshwright {
namespace {

using Words = std::vector<std::string>;

// ---- what a plan asks for -----------------------------------------------------------------------

/// An option that is used or not; `flag` without dashes.
struct PlanOption {
  std::string_view flag;
  bool (*is_used)(const Plan&);
};
constexpr PlanOption kPlanOptions[]{
    {"overlap-gather", [](const Plan& p) { return p.strategy.data_parallelism.overlap_gather; }},
    {"fsdp-prefetch",
     [](const Plan& p) {
       return p.strategy.zero == 3 &&
              p.strategy.data_parallelism.prefetch != DataParallelism{}.prefetch;
     }},
    {"fsdp-no-reshard",
     [](const Plan& p) {
       return p.strategy.zero == 3 && !p.strategy.data_parallelism.reshard_after_forward;
     }},
    {"shard-ranks", [](const Plan& p) { return p.strategy.data_parallelism.shard_ranks > 0; }},
    {"offload-optimizer",
     [](const Plan& p) { return p.strategy.data_parallelism.offload_optimizer; }},
    {"tp-comm-overlap", [](const Plan& p) { return p.strategy.model_parallelism.tensor_overlap; }},
    {"expert-capacity",
     [](const Plan& p) { return p.strategy.model_parallelism.routing.capacity > 0; }},
    {"expert-fp8-dispatch",
     [](const Plan& p) { return p.strategy.model_parallelism.routing.fp8_dispatch; }},
    {"expert-node-limit",
     [](const Plan& p) { return p.strategy.model_parallelism.routing.node_limit > 0; }},
    {"expert-overlap", [](const Plan& p) { return p.strategy.model_parallelism.routing.overlap; }},
    {"fp8-param-gather", [](const Plan& p) { return p.strategy.precision.fp8_parameters; }},
    {"bf16-end-layers", [](const Plan& p) { return p.strategy.precision.wide_blocks > 0; }},
    {"layer-options", [](const Plan& p) { return !p.strategy.layer_options.empty(); }},
    {"batch-shares", [](const Plan& p) { return !p.strategy.batch_shares.empty(); }},
    {"stage-devices", [](const Plan& p) { return !p.device_of_stage.empty(); }}};

constexpr std::array<std::string_view, 4> kZeroLevels{"0", "1", "2", "3"};
constexpr std::array<std::string_view, 7> kRecomputeWords{
    "none", "selective", "full", "block", "modules", "torch-selective", "block-list"};
constexpr std::string_view kBlockList = kRecomputeWords.back();

/// Megatron-LM --use-tp-pp-dp-mapping.
constexpr std::string_view kPipelineBeforeDataName = "tp-cp-ep-pp-dp";
constexpr RankOrder kPipelineBeforeData = [] {
  RankOrder order;
  std::swap(*std::find(order.axes.begin(), order.axes.end(), Axis::kPipeline),
            *std::find(order.axes.begin(), order.axes.end(), Axis::kData));
  return order;
}();

std::string_view expert_tensor_word(const ParallelDegrees& d) {
  if (d.expert_tensor == 1) return "1";
  return d.expert_tensor == d.tensor ? "tp" : "other";
}

std::string_view stage_cut_word(const std::vector<int>& blocks) {
  const auto [least, most] = std::minmax_element(blocks.begin(), blocks.end());
  return *least == *most ? "equal" : *most - *least == 1 ? "balanced" : "any";
}

std::string_view bucket_word(BucketRule rule) {
  return rule == BucketRule::kPyTorch    ? "pytorch"
         : rule == BucketRule::kMegatron ? "megatron"
                                         : "size";
}

/// Calls ask(ability, word) for everything that the plan asks for, in the order of Ability.
template <class Ask>
void visit_asks(const Plan& plan, const Ask& ask) {
  const Strategy& s = plan.strategy;
  const ParallelDegrees& d = s.degrees;
  if (d.pipeline > 1 || s.schedule != kDefaultSchedule) ask(Ability::kSchedules, s.schedule);
  for (const Axis axis : kAxes)
    if (axis != Axis::kData && size_along(d, axis) > 1)
      ask(Ability::kParallelism, parallelism_of(axis));
  if (d.tensor > 1) ask(Ability::kSequenceParallel, s.sequence_parallel ? "with" : "without");
  if (d.context > 1) ask(Ability::kContextAlgorithms, name_of(s.model_parallelism.context));
  if (d.expert > 1 || d.expert_tensor > 1) ask(Ability::kExpertTensor, expert_tensor_word(d));
  const bool is_replicated = replica_count(d) > 1;
  if (s.zero > 0 || is_replicated)
    ask(Ability::kZero, kZeroLevels[static_cast<std::size_t>(std::clamp(s.zero, 0, 3))]);
  ask(Ability::kRecompute, s.recompute.blocks_per_stage.empty()
                               ? kRecomputeWords[static_cast<std::size_t>(s.recompute.kind)]
                               : kBlockList);
  for (int m = 0; m < kRecomputeModuleCount; ++m)
    if (const auto module = static_cast<RecomputeModule>(m); s.recompute.has(module))
      ask(Ability::kRecomputeModules, name_of(module));
  ask(Ability::kDtypes, name_of(s.dtype));
  if (s.dtype == Dtype::kFp8) ask(Ability::kFp8Recipes, name_of(s.precision.fp8_recipe));
  ask(Ability::kGradientDtypes, name_of(s.precision.gradients));
  if (plan.blocks_per_stage.size() > 1)
    ask(Ability::kStageCuts, stage_cut_word(plan.blocks_per_stage));
  ask(Ability::kDataParallel, name_of(s.data_parallelism.kind));
  if (s.data_parallelism.buckets.rule != BucketRule::kNone)
    ask(Ability::kBuckets, bucket_word(s.data_parallelism.buckets.rule));
  ask(Ability::kAttention, name_of(s.attention));
  if (const RankOrder& order = s.model_parallelism.order; order != RankOrder{})
    ask(Ability::kRankOrders, order == kPipelineBeforeData ? kPipelineBeforeDataName : "other");
  for (const PlanOption& option : kPlanOptions)
    if (option.is_used(plan)) ask(Ability::kOptions, option.flag);
}

// ---- words --------------------------------------------------------------------------------------

template <class Enum>
Words names_of(int count) {
  Words words;
  for (int i = 0; i < count; ++i) words.emplace_back(name_of(static_cast<Enum>(i)));
  return words;
}

Words parallelism_words() {
  Words words;
  for (const Axis axis : kAxes)
    if (axis != Axis::kData) words.emplace_back(parallelism_of(axis));
  return words;
}
Words gradient_dtype_words() { return {"fp32", "bf16", "fp16"}; }
Words option_words() {
  Words words;
  for (const PlanOption& option : kPlanOptions) words.emplace_back(option.flag);
  return words;
}

/// How an ability is written. In sentences {} is the word, or several: "schedules a and b".
struct AbilityText {
  std::string_view key;
  std::string_view flag;  ///< without dashes; empty: depends on the word
  std::string_view one, several;
  std::string_view accepted;  ///< after "it has"; empty: the accepted words are not listed
  Words (*words)();
};
constexpr std::array<AbilityText, kAbilityCount> kTexts{{
    {"schedules", "schedule", "schedule '{}'", "schedules {}", "{}", schedule_names},
    {"parallelism", "", "{} parallelism", "{} parallelism", "", parallelism_words},
    {"sequence_parallel", "sequence-parallel", "tensor parallelism {} sequence parallelism",
     "tensor parallelism {} sequence parallelism", "",
     [] {
       return Words{"with", "without"};
     }},
    {"context_algorithms", "context-algorithm", "context parallelism by {}",
     "context parallelism by {}", "{}",
     [] { return names_of<ContextAlgorithm>(kContextAlgorithmCount); }},
    {"expert_tensor", "etp", "expert-tensor-parallel size {}", "expert-tensor-parallel sizes {}",
     "{}",
     [] {
       return Words{"1", "tp", "other"};
     }},
    {"zero", "zero", "ZeRO {}", "ZeRO {}", "ZeRO {}",
     [] { return Words(kZeroLevels.begin(), kZeroLevels.end()); }},
    {"recompute", "recompute", "recomputation '{}'", "recomputation {}", "{}",
     [] { return Words(kRecomputeWords.begin(), kRecomputeWords.end()); }},
    {"recompute_modules", "recompute", "recomputation of module '{}'",
     "recomputation of modules {}", "{}",
     [] { return names_of<RecomputeModule>(kRecomputeModuleCount); }},
    {"dtypes", "dtype", "dtype '{}'", "dtypes {}", "{}",
     [] { return names_of<Dtype>(kDtypeCount); }},
    {"fp8_recipes", "fp8-recipe", "fp8 recipe '{}'", "fp8 recipes {}", "{}",
     [] { return names_of<Fp8Recipe>(static_cast<int>(Fp8Recipe::kMxfp8) + 1); }},
    {"gradient_dtypes", "grad-dtype", "gradients in {}", "gradients in {}", "{}",
     gradient_dtype_words},
    {"stage_cuts", "blocks-per-stage", "{} stages", "{} stages", "{} stages",
     [] {
       return Words{"equal", "balanced", "any"};
     }},
    {"data_parallel", "data-parallel", "data parallelism '{}'", "data parallelism {}", "{}",
     [] { return names_of<DataParallelKind>(kDataParallelKindCount); }},
    {"buckets", "bucket", "gradient buckets '{}'", "gradient buckets {}", "{}",
     [] {
       return Words{"pytorch", "megatron", "size"};
     }},
    {"attention", "attention", "{} attention", "{} attention", "{} attention",
     [] {
       return Words{"flash", "standard"};
     }},
    {"rank_orders", "rank-order", "rank order {}", "rank orders {}", "{}",
     [] {
       return Words{std::string(kPipelineBeforeDataName), "other"};
     }},
    {"options", "", "option --{}", "options --{}", "", option_words},
}};
const AbilityText& text_of(Ability ability) { return kTexts[static_cast<std::size_t>(ability)]; }

std::string filled(std::string_view pattern, std::string_view words) {
  const std::size_t at = pattern.find("{}");
  return fmt::format("{}{}{}", pattern.substr(0, at), words, pattern.substr(at + 2));
}

std::string shown_text(const Plan& plan, Ability ability, std::string_view word) {
  if (ability == Ability::kExpertTensor) return std::to_string(plan.strategy.degrees.expert_tensor);
  if (ability == Ability::kStageCuts && word == "any") return "uneven";
  if (ability == Ability::kRankOrders) return to_text(plan.strategy.model_parallelism.order);
  return std::string(word);
}

std::string with_text(const std::optional<Axis>& axis) {
  return axis ? fmt::format(" with {} parallelism", parallelism_of(*axis)) : "";
}

/// The flag of a word, without dashes.
std::string_view flag_of(Ability ability, std::string_view word) {
  if (ability == Ability::kOptions) return word;
  if (ability != Ability::kParallelism) return text_of(ability).flag;
  return std::ranges::find(kAxisNames, word, &AxisName::parallelism)->key;
}

std::string hint_of(const TrainerGap& gap) {
  const std::string_view flag = flag_of(gap.ability, gap.word);
  if (gap.ability == Ability::kParallelism)
    return fmt::format("set --{} to 1, or choose another --trainer", flag);
  if (gap.ability == Ability::kSequenceParallel)
    return fmt::format("{} --{}, or choose another --trainer",
                       gap.word == "with" ? "remove" : "add", flag);
  if (gap.accepted.empty()) return fmt::format("remove --{}, or choose another --trainer", flag);
  return fmt::format("use one of these with --{}, or choose another --trainer", flag);
}

Words accepted_words(const TrainerAbilities& abilities, Ability ability,
                     const std::optional<Axis>& with) {
  if (text_of(ability).accepted.empty()) return {};
  Words words = words_of(ability);
  std::erase_if(words, [&](const std::string& word) {
    return !accepts(abilities.any, ability, word) ||
           (with && !accepts(abilities.with[static_cast<std::size_t>(*with)], ability, word));
  });
  return words;
}

/// Calls report(axis) for the first restriction that rejects the word: none, or that of an axis.
template <class Report>
void find_rejection(const TrainerAbilities& abilities, const Plan& plan, Ability ability,
                    std::string_view word, const Report& report) {
  if (!accepts(abilities.any, ability, word)) return report(std::nullopt);
  for (std::size_t a = 0; a < abilities.with.size(); ++a)
    if (const auto axis = static_cast<Axis>(a);
        !accepts(abilities.with[a], ability, word) && size_along(plan.strategy.degrees, axis) > 1)
      return report(std::optional(axis));
}

}  // namespace

std::string_view key_of(Ability ability) { return text_of(ability).key; }
std::vector<std::string> words_of(Ability ability) { return text_of(ability).words(); }

bool accepts(const AbilityWords& words, Ability ability, std::string_view word) {
  const auto& accepted = words[static_cast<std::size_t>(ability)];
  return !accepted || std::find(accepted->begin(), accepted->end(), word) != accepted->end();
}

bool can_run(const TrainerAbilities& abilities, const Plan& plan) {
  bool is_possible = true;
  visit_asks(plan, [&](Ability ability, std::string_view word) {
    find_rejection(abilities, plan, ability, word, [&](auto) { is_possible = false; });
  });
  return is_possible;
}

std::vector<TrainerGap> trainer_gaps(const TrainerAbilities& abilities, const Plan& plan) {
  std::vector<TrainerGap> gaps;
  visit_asks(plan, [&](Ability ability, std::string_view word) {
    find_rejection(abilities, plan, ability, word, [&](std::optional<Axis> with) {
      gaps.push_back({.ability = ability,
                      .word = std::string(word),
                      .shown = shown_text(plan, ability, word),
                      .with = with,
                      .accepted = accepted_words(abilities, ability, with)});
    });
  });
  return gaps;
}

std::vector<Diagnostic> problems_of(std::span<const TrainerGap> gaps, std::string_view trainer_name,
                                    std::string_view where) {
  std::vector<Diagnostic> problems;
  for (const TrainerGap& gap : gaps) {
    const AbilityText& text = text_of(gap.ability);
    std::string what = fmt::format("{} has no {}{}", trainer_name, filled(text.one, gap.shown),
                                   with_text(gap.with));
    if (!gap.accepted.empty())
      what += fmt::format("; it has {}", filled(text.accepted, enumeration(gap.accepted)));
    problems.push_back({.where = place_of_field(where, flag_of(gap.ability, gap.word)),
                        .what = std::move(what),
                        .hint = hint_of(gap)});
  }
  return problems;
}

std::vector<Diagnostic> trainer_problems(const Plan& plan, const Trainer& trainer,
                                         std::string_view where) {
  return problems_of(trainer_gaps(trainer.abilities, plan), trainer.name, where);
}

std::string missing_text(std::span<const TrainerGap> gaps) {
  std::vector<const TrainerGap*> sorted;
  for (const TrainerGap& gap : gaps) sorted.push_back(&gap);
  const auto group_of = [](const TrainerGap* gap) { return std::tuple(gap->ability, gap->with); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const TrainerGap* a, const TrainerGap* b) {
    return group_of(a) < group_of(b);
  });
  Words groups;
  for (std::size_t i = 0; i < sorted.size();) {
    const TrainerGap& first = *sorted[i];
    Words words;
    for (; i < sorted.size() && group_of(sorted[i]) == group_of(&first); ++i)
      if (std::find(words.begin(), words.end(), sorted[i]->shown) == words.end())
        words.push_back(sorted[i]->shown);
    const AbilityText& text = text_of(first.ability);
    const bool is_one = words.size() == 1;
    groups.push_back(fmt::format("no {}{}",
                                 filled(is_one ? text.one : text.several, enumeration(words)),
                                 with_text(first.with)));
  }
  return enumeration(groups);
}

}  // namespace meshwright
