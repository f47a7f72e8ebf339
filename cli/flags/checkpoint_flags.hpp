/// --init, --save, --save-every, --keep, --format and --resume of `run`.
#pragma once

#include <optional>
#include <string>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/external_weights.hpp"

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

/// The same. `where` names the model in the error.
WeightLayout external_layout_of(const ModelGraph& model, const std::string& where);
/// Weights of a HuggingFace checkpoint. Warns of tensors that are not used.
ExternalWeights external_weights(const std::string& path, const ModelGraph& model,
                                 const WeightLayout& layout);

/// The checkpoint named by --resume, the newest one that can be read if it names a directory;
/// nullopt without it. Warns of damaged newer checkpoints. InputError if it is unreadable, belongs
/// to another model, or does not end at a step boundary of the plan.
std::optional<Checkpoint> resumed_checkpoint(const CheckpointFlags& flags, const ModelGraph& model,
                                             const Strategy& strategy);
/// The weights named by --init, which `layout` describes; nullopt without it.
std::optional<ExternalWeights> initial_weights(const CheckpointFlags& flags,
                                               const ModelGraph& model,
                                               const std::optional<WeightLayout>& layout);
/// UsageError for --save-every, --keep or --format without --save, --keep without a directory, and
/// for --init with --resume.
void check_checkpoint_flags(const CheckpointFlags& flags);
/// What a run starts from. Both empty: random weights.
struct StartingPoint {
  const std::optional<Checkpoint>& resumed;
  const std::optional<ExternalWeights>& weights;
};
/// `start` and `layout` must outlive the result, which lacks settings and config. InputError for
/// --save or --resume if not `trains` (the replay clock).
CheckpointOptions checkpoint_options(const CheckpointFlags& flags, const StartingPoint& start,
                                     const std::optional<WeightLayout>& layout, bool trains);

}  // namespace meshwright
