/// Models from HuggingFace configurations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/model/model_graph.hpp"
#include "models/builders/transformer_config.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

struct LoadedModel {
  ModelGraph graph;
  std::vector<Diagnostic> warnings;  ///< unknown keys, which may describe another model
};
/// Reads a HuggingFace config.json. InputError names key, value and what is expected.
LoadedModel load_model(const NamedText& config);
/// What load_model() builds a transformer from.
struct LoadedTransformer {
  std::string family;  ///< model_type
  TransformerConfig config;
  std::string object;  ///< JSON of the language model: keys that affect neither size nor cost
};
/// Empty for models that are not transformers.
std::optional<LoadedTransformer> load_transformer(const NamedText& config);
/// The graph of load_model(), without warnings.
ModelGraph model_from_config(const NamedText& config);
}  // namespace meshwright
