/// Weights of other programs: HuggingFace checkpoints, read by --init and written by --format hf.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/weight_layout.hpp"
#include "executor/checkpoint/checkpoint.hpp"

namespace meshwright {

/// A safetensors file, a sharded checkpoint's index (model.safetensors.index.json), or the folder
/// of either. Names may lack the prefix of the base model ("model.", "transformer."), as in files
/// of that model alone. Tensors are read when a parameter needs them, one at a time.
class ExternalWeights {
 public:
  /// Reads the headers. Throws InputError for missing tensors and other shapes.
  ExternalWeights(const std::string& path, const ModelGraph& model, WeightLayout layout);
  /// The unsharded values of a parameter, in fp32. From several threads at once.
  std::vector<float> values(const Tensor& parameter) const;
  /// Tensors of the files that the model does not have.
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  struct Place {
    std::size_t file = 0;
    SafetensorsFile::Entry entry;
    std::int64_t columns = 0;
  };
  WeightLayout layout_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> places_;  ///< by tensor of the layout
  std::vector<std::string> unused_;
};

/// All weights, at step 0; moments are empty, which means zero.
Checkpoint to_checkpoint(const ExternalWeights& weights, const ModelGraph& model);
/// Sets the weights of the shards that this rank holds, one parameter at a time.
void initialize(TrainingActions& actions, const ExternalWeights& weights);

/// Creates the directory of the weights at `path`, with the config.json that from_pretrained() of
/// transformers reads beside them. Throws RuntimeFailure if it cannot.
void write_model_directory(const std::string& path, const std::string& model_config);
/// A file that from_pretrained() reads; without the moments.
std::string to_external_file(const Checkpoint& checkpoint, const ModelGraph& model,
                             const WeightLayout& layout);

}  // namespace meshwright
