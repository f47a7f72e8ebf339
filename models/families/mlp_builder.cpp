#include "models/families/mlp_builder.hpp"

#include <fmt/format.h>

#include "models/builders/graph_writer.hpp"

namespace meshwright {

MlpConfig read_mlp(ConfigReader& reader) {
  constexpr std::int64_t kHidden = 1024, kVocabulary = 256, kLayers = 2;
  return {.hidden = reader.dimension("hidden_size", kHidden),
          .vocabulary = reader.dimension("vocab_size", kVocabulary),
          .layers = reader.dimension("num_hidden_layers", kLayers, kMostLayers),
          .intermediate = reader.optional_dimension("intermediate_size", std::nullopt)};
}

namespace {

TensorId write_relu(GraphWriter& writer, const ActivationTensor& shape, TensorId input) {
  const TensorId output = writer.activation("relu", shape);
  writer.add("relu", {.shape = Activation{ActivationKind::kRelu, shape.width, false},
                      .inputs = {input},
                      .outputs = {output},
                      .kept = {input}});
  return output;
}

TensorId write_block(GraphWriter& writer, const MlpConfig& config, TensorId input) {
  const std::int64_t hidden = config.hidden;
  if (!config.intermediate) {
    const TensorId y =
        writer.linear({.name = "linear", .in = hidden, .out = hidden, .bias = true}, input);
    return write_relu(writer, {.width = hidden}, y);
  }
  const std::int64_t width = *config.intermediate;
  const TensorId up = writer.linear(
      {.name = "up", .in = hidden, .out = width, .bias = true, .cut = LinearCut::kColumn}, input);
  const TensorId y = write_relu(writer, {.width = width, .cut = ActivationCut::kFeatures}, up);
  return writer.linear(
      {.name = "down", .in = width, .out = hidden, .bias = true, .cut = LinearCut::kRow}, y);
}

}  // namespace

ModelGraph build_mlp(const MlpConfig& config, const std::string& name, const std::string& where) {
  const std::int64_t hidden = config.hidden, vocabulary = config.vocabulary;
  GraphWriter writer(name, "mlp", where);
  writer.begin_layer(LayerKind::kEmbedding, "embedding.");
  TensorId x = writer.lookup("words", {vocabulary, hidden}, ParameterCut::kReplicated).output;
  writer.end_layer(hidden);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    writer.begin_layer(LayerKind::kBlock, fmt::format("layer{}.", i));
    x = write_block(writer, config, x);
    writer.end_layer(hidden);
  }
  writer.begin_layer(LayerKind::kHead, "head.");
  const TensorId logits =
      writer.linear({.name = "logits", .in = hidden, .out = vocabulary, .bias = true}, x);
  writer.loss(logits, vocabulary);
  writer.end_layer(0);
  return writer.finish(/*longest_sequence=*/0, /*tied_embeddings=*/false);
}

}  // namespace meshwright
