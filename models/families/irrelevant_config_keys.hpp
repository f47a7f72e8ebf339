/// Keys of config.json files that say nothing about the size or the cost of training a model.
#pragma once

#include <string_view>

namespace meshwright {

/// True for keys of HuggingFace's base classes (labels, text generation, token IDs, library
/// versions) and for weights of losses that are off (output_router_logits is refused).
bool is_irrelevant_config_key(std::string_view key);

}  // namespace meshwright
