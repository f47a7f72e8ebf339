/// The complete state of a training run, independent of the plan: written by --save, read by
/// --resume.
///
/// A safetensors file (core/formats/safetensors.hpp) with three unsharded fp32 tensors per model
/// parameter: NAME, NAME.first_moment and NAME.second_moment (not with SGD). The metadata record
/// the format, model, seed, training step and position in the text, and the settings of the run as
/// "setting.NAME". With an asynchronous parameter
/// server every worker resumes from the weights it pulled last: N workers add N tensors per
/// parameter, NAME.worker_0 and so on, and the metadata key "workers". A plan with the same number
/// of workers resumes from these, any other plan from the servers' weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/safetensors.hpp"
#include "core/formats/weight_layout.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "executor/transport/communicator.hpp"

namespace meshwright {

class ExternalWeights;
class TrainingActions;

struct ParameterState {
  /// Unsharded, row-major. Moments may be empty: zero.
  std::vector<float> weights, first_moment, second_moment;
  friend bool operator==(const ParameterState&, const ParameterState&) = default;
};

struct Checkpoint {
  std::int64_t step = 0;           ///< completed training steps
  std::int64_t text_position = 0;  ///< tokens consumed by these steps
  std::uint64_t seed = 0;
  std::map<std::string, ParameterState> parameters;  ///< by name
  /// Unsharded weights by name and worker; empty if all ranks share one version.
  std::map<std::string, std::vector<std::vector<float>>> of_workers = {};
  /// How the run was set up, by name, to be compared with the run that resumes.
  std::map<std::string, std::string> settings = {};
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Hash of the names and shapes of the model's parameters.
std::uint64_t parameter_hash(const ModelGraph& model);

std::string to_file(const Checkpoint& checkpoint, const ModelGraph& model);
/// Throws InputError at `where` if this is not a safetensors file, belongs to another model, or has
/// missing (the hint suggests similar names), additional or differently shaped parameters.
Checkpoint checkpoint_from_file(std::string_view content, const ModelGraph& model,
                                std::string_view where);

/// A plan resumes at the checkpoint's text position: throws InputError if that is not a multiple of
/// the tokens per step.
void check_resumable(const Checkpoint& checkpoint, const Strategy& strategy,
                     std::string_view where);

struct CheckpointOptions {
  std::string save;  ///< file, or directory for one file per checkpoint; empty: none
  const WeightLayout* layout = nullptr;  ///< of weights for HuggingFace; null: the format above
  std::string model_config = {};         ///< config.json beside such weights
  int every = 0;                         ///< steps between checkpoints; 0: after the last step only
  int keep = 0;                          ///< newest checkpoints left in the directory; 0: all
  std::map<std::string, std::string> settings = {};  ///< see Checkpoint
  const Checkpoint* resume = nullptr;
  const ExternalWeights* init = nullptr;  ///< weights to start from, instead of `resume`
  std::int64_t first_step() const { return resume == nullptr ? 0 : resume->step; }
  /// Whether a checkpoint is due after step number `step` of `steps` in this run.
  bool saves_after(int step, int steps) const {
    if (save.empty()) return false;
    return step + 1 == steps || (every > 0 && (step + 1) % every == 0);
  }
};
/// "DIRECTORY/step-000120.safetensors" if --save is a directory, else its file. For HuggingFace
/// "DIRECTORY/step-000120/model.safetensors", in the directory of a model.
std::string checkpoint_path(const CheckpointOptions& options, std::int64_t step);
/// Paths of the checkpoints in a directory by step; of models for HuggingFace, their directories.
std::map<std::int64_t, std::string> checkpoints_in(const std::string& directory,
                                                   bool for_huggingface = false);
/// Removes all but the newest checkpoints to keep, of those up to `step`. Those of later steps
/// belong to another run.
void remove_old_checkpoints(const CheckpointOptions& options, std::int64_t step);

/// Collective over all ranks; rank 0 writes the file atomically. Throws RuntimeFailure if it
/// cannot.
void save_checkpoint(Communicator& communicator, TrainingActions& actions, const ModelGraph& model,
                     const Checkpoint& about, const CheckpointOptions& options);
/// Restores the shards that this rank holds.
void restore(TrainingActions& actions, const Checkpoint& checkpoint);

}  // namespace meshwright
