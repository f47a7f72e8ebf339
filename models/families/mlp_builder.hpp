/// The toy model: a stack of linear layers with ReLU, for tutorials and small tests.
///
///   {"model_type": "mlp", "hidden_size": 1024, "num_hidden_layers": 2, "vocab_size": 256}
///
/// The embedding looks up one row per token, each block is y = relu(x W + b) with W [H, H], and the
/// head classifies every token into `vocab_size` classes. Tensor parallelism replicates everything,
/// unless there is an "intermediate_size" F: then each block is y = relu(x W1 + b1) W2 + b2 with W1
/// [H, F] sharded by columns and W2 [F, H] by rows (Shoeybi et al., arXiv 1909.08053).
#pragma once

#include <optional>
#include <string>

#include "core/model/model_graph.hpp"
#include "models/families/config_reader.hpp"

namespace meshwright {

struct MlpConfig {
  std::int64_t hidden = 0, vocabulary = 0, layers = 0;
  std::optional<std::int64_t> intermediate = {};  ///< F
};
MlpConfig read_mlp(ConfigReader& reader);
ModelGraph build_mlp(const MlpConfig& config, const std::string& name, const std::string& where);

}  // namespace meshwright
