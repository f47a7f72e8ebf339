/// The dialects of HuggingFace config.json: the keys and defaults of every supported model_type.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/builders/transformer_config.hpp"
#include "models/families/config_reader.hpp"

namespace meshwright {

/// Values of model_type that read_transformer() understands, sorted.
std::vector<std::string> transformer_families();

/// The model_type of an `architectures` entry: "LlamaForCausalLM" → "llama".
std::optional<std::string> family_of_architecture(const std::string& architecture);

/// Reads and checks a configuration of a supported family; errors are collected in `reader`.
TransformerConfig read_transformer(const std::string& family, ConfigReader& reader);

}  // namespace meshwright
