/// --save, --save-every and --resume of `run`.
#pragma once

#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct CheckpointFlags {
  std::string save, resume;
  std::optional<int> every;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);

/// The checkpoint named by --resume; nullopt without it. InputError if it is unreadable, belongs to
/// another model, or does not end at a step boundary of the plan.
std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy);
/// UsageError for --save-every without --save.
void check_checkpoint_flags(const CheckpointFlags& flags);
/// `resumed` must outlive the result. InputError for --save or --resume if not `trains` (the replay
/// clock).
CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed, bool trains);

}  // namespace meshwright
