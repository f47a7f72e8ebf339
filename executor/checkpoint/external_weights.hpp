/// Weights of other programs: HuggingFace checkpoints, read by --init and written by --format hf.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/formats/weight_layout.hpp"
#include "executor/checkpoint/checkpoint.hpp"

namespace meshwright {

struct InitialWeights {
  Checkpoint checkpoint;            ///< step 0; moments are empty, which means zero
  std::vector<std::string> unused;  ///< tensors of the files that the model does not have
};

/// From a safetensors file, a sharded checkpoint's index (model.safetensors.index.json), or the
/// folder of either. Names may lack the prefix of the base model ("model.", "transformer."), as in
/// files of that model alone. Throws InputError for missing tensors and other shapes. One file is
/// in memory at a time, beside all weights in fp32.
InitialWeights initial_weights(const std::string& path, const ModelGraph& model,
                               const WeightLayout& layout);

/// Creates the directory of the weights at `path`, with the config.json that from_pretrained() of
/// transformers reads beside them. Throws RuntimeFailure if it cannot.
void write_model_directory(const std::string& path, const std::string& model_config);
/// A file that from_pretrained() reads; without the moments.
std::string to_external_file(const Checkpoint& checkpoint, const ModelGraph& model,
                             const WeightLayout& layout);

}  // namespace meshwright
