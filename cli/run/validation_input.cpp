#include "cli/run/validation_input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/run/run_input.hpp"
#include "cli/run/token_input.hpp"

namespace meshwright {
namespace {

/// A batch also reads the token after its last one.
std::int64_t whole_batches(const Strategy& strategy, const TokenText& text) {
  return (text.size() - 1) / (strategy.global_batch * strategy.sequence_length);
}

}  // namespace

void check_validation_flags(const RunFlags& flags, const Strategy& strategy) {
  if (flags.validation.empty()) {
    const char* given = flags.every              ? "--every"
                        : flags.validation_steps ? "--validation-steps"
                                                 : nullptr;
    if (given == nullptr) return;
    throw UsageError({.where = given,
                      .what = "requires '--validation'",
                      .hint = "set a file of held-out tokens, for example --validation val.bin"});
  }
  if (clock_of(flags) == TimelineClock::kReplay)
    throw UsageError({.where = "--validation",
                      .what = "cannot be combined with '--clock replay', which does not train",
                      .hint = "use --clock virtual or --clock wall"});
  throw_if_any(check_validation(strategy));
}

std::optional<TokenText> read_held_out(const RunFlags& flags, const ModelGraph& model,
                                       const Strategy& strategy) {
  if (flags.validation.empty()) return std::nullopt;
  TokenText text = flags.tokens.empty()
                       ? words_of_text(flags.validation, model)
                       : words_of_tokens({flags.validation}, flags.token_type, model);
  if (whole_batches(strategy, text) < 1)
    throw InputError(
        Diagnostic{"--validation",
                   fmt::format("'{}' has {} tokens, but a global batch needs {}", flags.validation,
                               text.size(), strategy.global_batch * strategy.sequence_length + 1),
                   "use a longer file, or a smaller --global-batch or --seq"});
  return text;
}

ValidationOptions validation_options(const RunFlags& flags, const Strategy& strategy,
                                     const std::optional<TokenText>& held_out) {
  if (!held_out) return {};
  std::int64_t batches = whole_batches(strategy, *held_out);
  if (flags.validation_steps) batches = std::min<std::int64_t>(batches, *flags.validation_steps);
  return {.text = &*held_out, .batches = batches, .every = flags.every.value_or(0)};
}

}  // namespace meshwright
