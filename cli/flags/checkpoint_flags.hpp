/// --init, --save, --save-every, --keep, --format and --resume of `run`.
#pragma once

#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"

namespace CLI {
class App;
}

namespace meshwright {

struct CheckpointFlags {
  std::string init, save, resume, format = "meshwright";
  std::optional<int> every, keep;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);

/// Names of parameters in HuggingFace checkpoints if --init or --format hf needs them; InputError
/// for models whose checkpoints are not known.
std::optional<WeightLayout> external_layout(const CheckpointFlags& flags, const ModelGraph& model);

/// The checkpoint named by --resume, the newest one that can be read if it names a directory, or
/// the weights named by --init, which `layout` describes; nullopt without them. Warns of damaged
/// newer checkpoints and of tensors that are not used. InputError if it is unreadable, belongs to
/// another model, or does not end at a step boundary of the plan.
std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy,
                                             const std::optional<WeightLayout>& layout);
/// UsageError for --save-every, --keep or --format without --save, --keep without a directory, and
/// for --init with --resume.
void check_checkpoint_flags(const CheckpointFlags& flags);
/// `resumed` and `layout` must outlive the result, which lacks settings and config. InputError for
/// --save or --resume if not `trains` (the replay clock).
CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed,
                                     const std::optional<WeightLayout>& layout, bool trains);

}  // namespace meshwright
