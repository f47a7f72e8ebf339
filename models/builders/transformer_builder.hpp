/// Builds the operator graph of a checked transformer configuration. One file per part of a block:
/// attention_builder.cpp, feed_forward_builder.cpp (with experts), transformer_builder.cpp.
#pragma once

#include <string>

#include "models/builders/graph_writer.hpp"
#include "models/builders/transformer_config.hpp"

namespace meshwright {

/// Projections, positions, attention and output projection: [B, T, H] → [B, T, H].
TensorId write_attention(GraphWriter& writer, const TransformerConfig& config,
                         const LayerConfig& layer, TensorId input);

/// Feed-forward part of a block, dense or with experts: [B, T, H] → [B, T, H].
TensorId write_feed_forward(GraphWriter& writer, const TransformerConfig& config,
                            const LayerConfig& layer, TensorId input);

/// The whole model: embedding layer, blocks, head. `where` is the file in errors.
ModelGraph build_transformer(const TransformerConfig& config, const std::string& name,
                             const std::string& family, const std::string& where);

}  // namespace meshwright
