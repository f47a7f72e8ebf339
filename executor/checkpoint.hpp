/// The whole state of a training run: what --save writes and --resume reads, under any plan.
///
/// A safetensors file (core/io_safetensors.hpp) with three fp32 tensors for each parameter of the
/// model, whole: NAME, NAME.first_moment and NAME.second_moment (of AdamW). Its metadata say which
/// format, model, seed, training step and word of the text it is. Workers of an asynchronous server
/// each go on from what they pulled last: of N such workers there are N tensors more for each
/// parameter, NAME.worker_0 and so on, and "workers" among the metadata. Plans of as many workers
/// go on from them, others all from the servers' weights.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/io_safetensors.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "executor/communicator.hpp"

namespace meshwright {

class TrainingActions;

struct ParameterState {
  std::vector<float> weights, first_moment, second_moment;  ///< row-major, whole
  friend bool operator==(const ParameterState&, const ParameterState&) = default;
};

struct Checkpoint {
  std::int64_t step = 0;           ///< training steps that are done
  std::int64_t text_position = 0;  ///< words of the text that they read
  std::uint64_t seed = 0;
  std::map<std::string, ParameterState> parameters;  ///< by name
  /// By name and worker: weights, whole; empty where all ranks have the same.
  std::map<std::string, std::vector<std::vector<float>>> of_workers = {};
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Of names and shapes of the model's parameters.
std::uint64_t parameter_hash(const ModelGraph& model);

std::string to_file(const Checkpoint& checkpoint, const ModelGraph& model);
/// InputError at `where`: no safetensors file, of another model, parameters missing (with the
/// nearest names), too many or of other shapes.
Checkpoint checkpoint_from_file(std::string_view content, const ModelGraph& model,
                                std::string_view where);

/// A plan goes on where the checkpoint's words end: InputError if that is no whole step of it.
void check_resumable(const Checkpoint& checkpoint, const Strategy& strategy,
                     std::string_view where);

struct CheckpointOptions {
  std::string save;  ///< a file, or a folder for a file per checkpoint; empty: none
  int every = 0;     ///< steps between checkpoints; 0: one behind the last step
  const Checkpoint* resume = nullptr;
  std::int64_t first_step() const { return resume == nullptr ? 0 : resume->step; }
  /// Of `steps` in this run, the one with number `step` has ended.
  bool saves_after(int step, int steps) const {
    if (save.empty()) return false;
    return step + 1 == steps || (every > 0 && (step + 1) % every == 0);
  }
};
/// "FOLDER/step-000120.safetensors" where `save` is a folder.
std::string checkpoint_path(const std::string& save, std::int64_t step);

/// All ranks take part; rank 0 writes the file, whole or not at all. RuntimeFailure if it cannot.
void save_checkpoint(Communicator& communicator, TrainingActions& actions, const ModelGraph& model,
                     const Checkpoint& about, const std::string& path);
/// What this rank holds of it.
void restore(TrainingActions& actions, const Checkpoint& checkpoint);

}  // namespace meshwright
