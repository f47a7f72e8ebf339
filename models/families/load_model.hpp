/// Models from HuggingFace configurations.
#pragma once

#include <vector>

#include "core/base/error.hpp"
#include "core/model/model_graph.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

struct LoadedModel {
  ModelGraph graph;
  std::vector<Diagnostic> warnings;  ///< unknown keys, which may describe another model
};
/// Reads a HuggingFace config.json. InputError names key, value and what is expected.
LoadedModel load_model(const NamedText& config);
/// The graph of load_model(), without warnings.
ModelGraph model_from_config(const NamedText& config);
}  // namespace meshwright
