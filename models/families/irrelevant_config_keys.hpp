/// Keys of config.json files that say nothing about the size or the cost of training a model.
#pragma once

#include <string_view>

namespace meshwright {

/// True for keys of HuggingFace's base classes (labels, text generation, token IDs, library
/// versions), for constants (epsilons, RoPE base and scaling, initializer ranges, loss weights) and
/// for routing rules of experts that do not change how many experts a token visits.
bool is_irrelevant_config_key(std::string_view key);

}  // namespace meshwright
