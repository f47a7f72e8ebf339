#include "models/builders/transformer_builder.hpp"

#include <fmt/format.h>

namespace meshwright {
namespace {

struct Embedding {
  TensorId output;
  TensorId word_table;
};

/// Sums word, position and token-type embeddings. BERT normalizes the sum before dropout; the mask
/// has the same size either way and is saved by the last sum.
Embedding write_embedding(GraphWriter& writer, const TransformerConfig& config) {
  const std::int64_t hidden = config.hidden;
  writer.begin_layer(LayerKind::kEmbedding, "embedding.");
  const GraphWriter::Lookup words =
      writer.lookup("words", config.vocabulary, hidden, ParameterCut::kTensor);
  TensorId sum = words.output;
  if (config.learned_positions) {
    const TensorId positions =
        writer.lookup("positions", config.positions, hidden, ParameterCut::kReplicated).output;
    const bool is_last = config.token_types == 0;
    sum = writer.residual("sum", sum, positions, hidden, is_last ? config.embedding_dropout : 0);
  }
  if (config.token_types > 0) {
    const TensorId types =
        writer.lookup("token_types", config.token_types, hidden, ParameterCut::kReplicated).output;
    sum = writer.residual("sum_types", sum, types, hidden, config.embedding_dropout);
  }
  if (config.norm_after) sum = writer.norm("norm", sum, config.norm, hidden);
  writer.end_layer(hidden);
  return {sum, words.table};
}

/// x + f(norm(x)) twice, or norm(x + f(x)) twice, or x + norm(f(norm(x))) twice.
TensorId write_block(GraphWriter& writer, const TransformerConfig& config, const LayerConfig& layer,
                     TensorId input) {
  const std::int64_t hidden = config.hidden;
  const bool before = !config.norm_after;
  TensorId x = before ? writer.norm("attention_norm", input, config.norm, hidden) : input;
  x = write_attention(writer, config, layer, x);
  if (config.norm_of_branches) x = writer.norm("attention_output_norm", x, config.norm, hidden);
  x = writer.residual("attention_residual", input, x, hidden, config.residual_dropout);
  if (!before) x = writer.norm("attention_norm", x, config.norm, hidden);
  const TensorId middle = x;
  if (before) x = writer.norm("feed_forward_norm", x, config.norm, hidden);
  x = write_feed_forward(writer, config, layer, x);
  if (config.norm_of_branches) x = writer.norm("feed_forward_output_norm", x, config.norm, hidden);
  x = writer.residual("feed_forward_residual", middle, x, hidden, config.residual_dropout);
  if (!before) x = writer.norm("feed_forward_norm", x, config.norm, hidden);
  return x;
}

/// Dense, GELU and norm before the logits (Devlin et al., arXiv 1810.04805).
TensorId write_masked_language_transform(GraphWriter& writer, const TransformerConfig& config,
                                         TensorId input) {
  const std::int64_t hidden = config.hidden;
  const TensorId dense =
      writer.linear({.name = "transform", .in = hidden, .out = hidden, .bias = true}, input);
  const TensorId activated = writer.activation("transform.activation", {.width = hidden});
  writer.add("transform.activation", {.shape = Activation{ActivationKind::kGelu, hidden, false},
                                      .inputs = {dense},
                                      .outputs = {activated},
                                      .kept = {dense}});
  return writer.norm("transform.norm", activated, config.norm, hidden);
}

/// Final norm, logits and loss. The loss saves the logits; core/operators/saved_activations.hpp
/// counts them separately, in fp32 (Korthikanti et al., arXiv 2205.05198, section 4.3: 4 s b v
/// bytes).
void write_head(GraphWriter& writer, const TransformerConfig& config, TensorId input,
                TensorId word_table) {
  const std::int64_t hidden = config.hidden, vocabulary = config.vocabulary;
  writer.begin_layer(LayerKind::kHead, "head.");
  TensorId x = input;
  if (config.masked_language_head) x = write_masked_language_transform(writer, config, x);
  if (!config.norm_after) x = writer.norm("norm", x, config.norm, hidden);
  std::vector<TensorId> parameters{
      config.tied_embeddings
          ? word_table
          : writer.parameter("logits.weight", {{hidden, vocabulary}, ParameterCut::kTensor})};
  const bool bias = config.masked_language_head;
  if (bias)
    parameters.push_back(writer.parameter("logits.bias", {{vocabulary}, ParameterCut::kTensor}));
  const TensorId logits =
      writer.activation("logits", {.width = vocabulary, .cut = ActivationCut::kFeatures});
  writer.add("logits", {.shape = Linear{hidden, vocabulary, bias, LinearCut::kColumn},
                        .inputs = {x},
                        .outputs = {logits},
                        .parameters = std::move(parameters),
                        .kept = {x}});
  writer.loss(logits, vocabulary);
  writer.end_layer(0);
}

}  // namespace

ModelGraph build_transformer(const TransformerConfig& config, const std::string& name,
                             const std::string& family, const std::string& where) {
  GraphWriter writer(name, family, where);
  const Embedding embedding = write_embedding(writer, config);
  TensorId x = embedding.output;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    writer.begin_layer(LayerKind::kBlock, fmt::format("layer{}.", i));
    x = write_block(writer, config, config.layers[i], x);
    writer.end_layer(config.hidden);
  }
  write_head(writer, config, x, embedding.word_table);
  return writer.finish(config.positions, config.tied_embeddings);
}

}  // namespace meshwright
