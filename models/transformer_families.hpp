/// The dialects of HuggingFace config.json: which key says what, and what a missing key means, for
/// every model_type known here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/config_reader.hpp"
#include "models/transformer_config.hpp"

namespace meshwright {

/// Values of model_type that read_transformer() understands, sorted.
std::vector<std::string> transformer_families();

/// model_type that an `architectures` entry belongs to: "LlamaForCausalLM" → "llama".
std::optional<std::string> family_of_architecture(const std::string& architecture);

/// Reads and checks a configuration of a known family; complaints are left in `reader`.
TransformerConfig read_transformer(const std::string& family, ConfigReader& reader);

}  // namespace meshwright
