/// --init, --save, --save-every, --format and --resume of `run`.
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
  std::optional<int> every;
};
void add_checkpoint_flags(CLI::App& command, CheckpointFlags& flags);

/// Names of parameters in HuggingFace checkpoints if --init or --format hf needs them; InputError
/// for models whose checkpoints are not known.
std::optional<WeightLayout> external_layout(const CheckpointFlags& flags, const ModelGraph& model);

/// The checkpoint named by --resume, or the weights named by --init, which `layout` describes;
/// nullopt without them. Warns of tensors that are not used. InputError if it is unreadable,
/// belongs to another model, or does not end at a step boundary of the plan.
std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy,
                                             const std::optional<WeightLayout>& layout);
/// UsageError for --save-every or --format without --save, and for --init with --resume.
void check_checkpoint_flags(const CheckpointFlags& flags);
/// `resumed` and `layout` must outlive the result. InputError for --save or --resume if not
/// `trains` (the replay clock).
CheckpointOptions checkpoint_options(const CheckpointFlags& flags,
                                     const std::optional<Checkpoint>& resumed,
                                     const std::optional<WeightLayout>& layout, bool trains);

}  // namespace meshwright
