/// `run --validation FILE --every N`: the loss of held-out tokens.
#pragma once

#include <optional>

#include "cli/run/run_flags.hpp"
#include "core/plan/plan.hpp"
#include "executor/training/validation.hpp"

namespace meshwright {

/// UsageError for flags that need --validation, InputError for plans that cannot validate.
void check_validation_flags(const RunFlags& flags, const Strategy& strategy);

/// Held-out tokens of --validation, if it is given: token IDs if the run trains on --tokens, else
/// bytes of a text. InputError if they are fewer than a global batch.
std::optional<TokenText> read_held_out(const RunFlags& flags, const ModelGraph& model,
                                       const Strategy& strategy);

/// `held_out` must outlive the result.
ValidationOptions validation_options(const RunFlags& flags, const Strategy& strategy,
                                     const std::optional<TokenText>& held_out);

}  // namespace meshwright
