/// The flags that say how training is split: the same for `simulate`, `explain` and `plan`, and
/// the keys of `strategy` in plan files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/plan.hpp"
#include "planner/search.hpp"

namespace CLI {
class App;
}

namespace meshwright {

/// The command line itself cannot be understood: exit code 2, where other wrong input is 3.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

/// What was given; what was not is empty.
struct StrategyFlags {
  FixedChoices choices;
  std::optional<std::int64_t> global_batch, sequence_length;
  /// Layers placed by hand: see Plan. Empty: the cut whose slowest stage is fastest.
  std::vector<int> blocks_per_stage, device_of_stage;
};

/// Adds a flag that takes a whole number of at least `smallest` and at most `largest`. A bad value
/// is a UsageError that names the flag, the value and the range. `Integer`: int or std::int64_t.
struct CountRange {
  std::int64_t smallest = 1, largest = 1;
};
inline constexpr CountRange kGpuRange{.smallest = 1, .largest = std::int64_t{1} << 20};
inline constexpr CountRange kGlobalBatchRange{.smallest = 1, .largest = std::int64_t{1} << 24};
inline constexpr CountRange kSequenceRange{.smallest = 1, .largest = std::int64_t{1} << 24};
std::int64_t parse_count(const std::string& flag, const std::string& text, CountRange range);
void add_count(CLI::App& app, const std::string& flag, std::optional<int>& value, CountRange range,
               const std::string& description);
void add_count(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& value,
               CountRange range, const std::string& description);

/// All but --global-batch and --seq.
void add_choice_flags(CLI::App& app, FixedChoices& choices);
/// Of the tensor, context and expert axes, and the rank order; add_choice_flags() has them.
void add_model_axis_flags(CLI::App& app, ModelParallelism& options);
/// --blocks-per-stage and --stage-devices.
void add_placement_flags(CLI::App& app, StrategyFlags& flags);
/// --global-batch and --seq.
void add_batch_flags(CLI::App& app, StrategyFlags& flags);

/// True if any flag of add_choice_flags() or add_batch_flags() was given.
bool is_any_given(const StrategyFlags& flags);

/// Completes the flags to a strategy: degrees not given are 1, but for data parallelism, which
/// takes all of the `gpus` that are left. Throws UsageError when a needed flag is missing, or when
/// the degrees do not multiply to `gpus`.
Strategy to_strategy(const StrategyFlags& flags, std::optional<int> gpus);

}  // namespace meshwright
