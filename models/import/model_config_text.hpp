/// A transformer as a HuggingFace config.json: the inverse of models/families.
#pragma once

#include <string>
#include <vector>

#include "models/builders/transformer_config.hpp"

namespace meshwright {

struct ModelConfigText {
  std::string json;
  /// What no supported model_type has: "hidden dropout 0.1 (0 is used)".
  std::vector<std::string> differences;
};
/// In the model_type that differs least; with the same differences, in the simplest one.
ModelConfigText model_config_text(const TransformerConfig& config);

}  // namespace meshwright
