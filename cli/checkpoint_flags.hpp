/// --save, --save-every and --resume of `run`.
#pragma once

#include <optional>
#include <string>

#include "executor/checkpoint.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct CheckpointFlags {
  std::string save, resume;
  std::optional<int> every;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);

/// What --resume names; nothing without it. InputError: unreadable, of another model, or of steps
/// of another size than the plan's.
std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy);
/// `resumed` stays where it is while the options are used. `trains`: false under the clock replay,
/// which has nothing to save: InputError.
CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed, bool trains);

}  // namespace meshwright
