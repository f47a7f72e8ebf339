/// Strategy flags: the same for every command, with the names of the keys of `strategy` in plan
/// files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/usage_error.hpp"
#include "core/plan/plan.hpp"
#include "core/plan/stage_cut.hpp"
#include "planner/search/search.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// The flags that were given; the others are empty.
struct StrategyFlags {
  FixedChoices choices;
  std::optional<std::int64_t> global_batch, sequence_length;
  /// Manual layer placement: see Plan. Empty: the partition with the fastest slowest stage.
  std::vector<int> blocks_per_stage, device_of_stage;
  std::optional<StageCut> stage_cut;  ///< instead of blocks_per_stage
  LayerOptions layer_options;
  BatchShares batch_shares;
};

/// Inclusive range of a flag that takes a whole number.
struct CountRange {
  std::int64_t smallest = 1, largest = 1;
};
inline constexpr CountRange kGpuRange{.smallest = 1, .largest = std::int64_t{1} << 20};
inline constexpr CountRange kGlobalBatchRange{.smallest = 1, .largest = std::int64_t{1} << 24};
inline constexpr CountRange kThreadRange{.smallest = 0, .largest = 1024};  ///< 0: all cores
inline constexpr CountRange kSequenceRange{.smallest = 1, .largest = std::int64_t{1} << 24};
/// UsageError with the flag, the value and the range if `text` is anything else.
std::int64_t parse_count(const std::string& flag, const std::string& text, CountRange range);
void add_count(CLI::App& app, const std::string& flag, std::optional<int>& value, CountRange range,
               const std::string& description);
void add_count(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& value,
               CountRange range, const std::string& description);

/// "--flag" and "--no-flag", with a description each; not given: `value` is empty.
void add_switch(CLI::App& app, const std::string& flag, std::optional<bool>& value,
                const std::string& on, const std::string& off);

/// All strategy flags but --global-batch and --seq, and those of add_placement_flags().
void add_choice_flags(CLI::App& app, FixedChoices& choices);
/// Options of the tensor, context and expert axes, and the rank order. Part of add_choice_flags().
void add_model_axis_flags(CLI::App& app, FixedChoices& choices);
/// --blocks-per-stage, --stage-devices and --layer-options.
void add_placement_flags(CLI::App& app, StrategyFlags& flags);
/// --global-batch, --seq and --batch-shares.
void add_batch_flags(CLI::App& app, StrategyFlags& flags);

/// True if any flag of add_choice_flags() or add_batch_flags() was given.
bool is_any_given(const StrategyFlags& flags);

/// Completes the flags to a strategy: parallel sizes that were not given are 1, except that data
/// parallelism uses the remaining `gpus`. UsageError if a required flag is missing, or if the sizes
/// do not multiply to `gpus`.
Strategy to_strategy(const StrategyFlags& flags, std::optional<int> gpus);

}  // namespace meshwright
