/// What a training program can run: for every choice of a plan, the words that it accepts. Facts of
/// the program and its version (models/trainers/*.toml, table [abilities]); costs are in
/// core/trainer/trainer.hpp. A default-constructed TrainerAbilities accepts every plan.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/kernel.hpp"

namespace meshwright {

struct Plan;
struct Trainer;

/// Choices of a plan that training programs restrict. A plan asks for words of a choice only where
/// the choice has an effect: for a context algorithm if context ranks exist.
enum class Ability : std::uint8_t {
  kSchedules,          ///< names in schedule_rules(); without a pipeline, 1f1b needs no ability
  kParallelism,        ///< "tensor", "context", "expert", "pipeline": sizes above 1
  kSequenceParallel,   ///< tensor ranks "with" or "without" sequence parallelism
  kContextAlgorithms,  ///< "all-gather", "ring", "all-to-all"
  /// Expert-tensor-parallel size: "1", "tp" (the tensor-parallel size) or "other".
  kExpertTensor,
  kZero,       ///< "0" to "3"; with one replica of the parameters, 0 needs no ability
  kRecompute,  ///< "none", "selective", "full", "block", "block-list", "modules", "torch-selective"
  kRecomputeModules,  ///< names of RecomputeModule
  kDtypes,            ///< names of Dtype
  kFp8Recipes,        ///< names of Fp8Recipe
  kGradientDtypes,    ///< dtype in which gradients are accumulated and reduced
  /// Layers per stage: "equal"; "balanced", at most one more than in another stage; "any".
  kStageCuts,
  kDataParallel,  ///< names of DataParallelKind
  kBuckets,       ///< overlapped gradient reduction in buckets: "pytorch", "megatron", "size"
  kAttention,     ///< names of AttentionAlgorithm
  kRankOrders,    ///< other than the default: "tp-cp-ep-pp-dp", "other"
  kOptions        ///< further options, by their flag without dashes: "overlap-gather"
};
inline constexpr int kAbilityCount = 17;
std::string_view key_of(Ability ability);            ///< key in TOML: "schedules"
std::vector<std::string> words_of(Ability ability);  ///< all that a plan can ask for

/// Accepted words by Ability; absent: all of them.
using AbilityWords = std::array<std::optional<std::vector<std::string>>, kAbilityCount>;

struct TrainerAbilities {
  AbilityWords any = {};  ///< in every plan
  /// In plans whose size along this axis is above 1, in addition to `any`; in files by
  /// parallelism_of() the axis.
  std::array<AbilityWords, kAxisCount> with = {};
  friend bool operator==(const TrainerAbilities&, const TrainerAbilities&) = default;
};

bool accepts(const AbilityWords& words, Ability ability, std::string_view word);
/// True if trainer_gaps() is empty; allocates nothing.
bool can_run(const TrainerAbilities& abilities, const Plan& plan);

/// A word that a plan asks for and a program does not accept.
struct TrainerGap {
  Ability ability = {};
  std::string word;
  std::string shown;         ///< the value in sentences: "zb-v", "7 6 6 5" layers per stage
  std::optional<Axis> with;  ///< not accepted together with this axis
  std::vector<std::string> accepted;
  friend bool operator==(const TrainerGap&, const TrainerGap&) = default;
};
/// In the order of Ability. Stages are judged only if the plan has blocks_per_stage.
std::vector<TrainerGap> trainer_gaps(const TrainerAbilities& abilities, const Plan& plan);

/// "megatron-core has no schedule 'zb-v'; it has 1f1b and interleaved-1f1b", one per gap; empty if
/// the trainer can run the plan. `where` as in check_plan(): "--", or the prefix of JSON pointers.
std::vector<Diagnostic> trainer_problems(const Plan& plan, const Trainer& trainer,
                                         std::string_view where = "--");
std::vector<Diagnostic> problems_of(std::span<const TrainerGap> gaps, std::string_view trainer_name,
                                    std::string_view where = "--");

/// "no schedules zb-v and dualpipe and no ZeRO 2 with pipeline parallelism": what a program lacks
/// for several plans, each word once, in the order of Ability.
std::string missing_text(std::span<const TrainerGap> gaps);

}  // namespace meshwright
