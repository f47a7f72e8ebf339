#include "models/builders/transformer_builder.hpp"

#include <fmt/format.h>

#include <string_view>

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
      writer.lookup("words", {config.vocabulary, hidden, 0, config.padding}, ParameterCut::kTensor);
  TensorId sum = writer.scale("scaled", words.output, config.embedding_scale, hidden);
  if (config.learned_positions) {
    const TensorId positions =
        writer
            .lookup("positions",
                    {config.first_position + config.positions, hidden, config.first_position},
                    ParameterCut::kReplicated)
            .output;
    const bool is_last = config.token_types == 0;
    sum = writer.residual("sum", sum, positions, hidden, is_last ? config.embedding_dropout : 0);
  }
  if (config.token_types > 0) {
    const TensorId types =
        writer.lookup("token_types", {config.token_types, hidden}, ParameterCut::kReplicated)
            .output;
    sum = writer.residual("sum_types", sum, types, hidden, config.embedding_dropout);
  }
  if (config.block == BlockKind::kAfter) sum = writer.norm("norm", sum, config.norm, hidden);
  writer.end_layer(hidden);
  return {sum, words.table};
}

/// What a branch adds to its input.
TensorId end_branch(GraphWriter& writer, const TransformerConfig& config, std::string_view name,
                    TensorId branch) {
  const bool normed = config.block == BlockKind::kBoth || config.block == BlockKind::kBranch;
  if (normed)
    branch = writer.norm(fmt::format("{}_output_norm", name), branch, config.norm, config.hidden);
  return writer.scale(fmt::format("{}_scaled", name), branch, config.residual_scale, config.hidden);
}

/// x + attention(norm(x)) + feed_forward(norm(x)).
TensorId write_parallel_block(GraphWriter& writer, const TransformerConfig& config,
                              const LayerConfig& layer, TensorId input) {
  const std::int64_t hidden = config.hidden;
  const TensorId attention_input = writer.norm("attention_norm", input, config.norm, hidden);
  const TensorId feed_forward_input =
      config.block == BlockKind::kParallelNorms
          ? writer.norm("feed_forward_norm", input, config.norm, hidden)
          : attention_input;
  const TensorId attention = end_branch(writer, config, "attention",
                                        write_attention(writer, config, layer, attention_input));
  const TensorId x =
      writer.residual("attention_residual", input, attention, hidden, config.residual_dropout);
  const TensorId feed_forward =
      end_branch(writer, config, "feed_forward",
                 write_feed_forward(writer, config, layer, feed_forward_input));
  return writer.residual("feed_forward_residual", x, feed_forward, hidden, config.residual_dropout);
}

TensorId write_block(GraphWriter& writer, const TransformerConfig& config, const LayerConfig& layer,
                     TensorId input) {
  const BlockKind kind = config.block;
  if (kind == BlockKind::kParallel || kind == BlockKind::kParallelNorms)
    return write_parallel_block(writer, config, layer, input);
  const std::int64_t hidden = config.hidden;
  const auto norm_if = [&](bool wanted, std::string_view name, TensorId x) {
    return wanted ? writer.norm(name, x, config.norm, hidden) : x;
  };
  const bool before = kind == BlockKind::kBefore || kind == BlockKind::kBoth;
  const bool after = kind == BlockKind::kAfter;
  TensorId x = norm_if(before, "attention_norm", input);
  x = end_branch(writer, config, "attention", write_attention(writer, config, layer, x));
  x = writer.residual("attention_residual", input, x, hidden, config.residual_dropout);
  const TensorId middle = norm_if(after, "attention_norm", x);
  x = norm_if(before, "feed_forward_norm", middle);
  x = end_branch(writer, config, "feed_forward", write_feed_forward(writer, config, layer, x));
  x = writer.residual("feed_forward_residual", middle, x, hidden, config.residual_dropout);
  return norm_if(after, "feed_forward_norm", x);
}

/// Dense, GELU and norm before the logits (Devlin et al., arXiv 1810.04805).
TensorId write_masked_language_transform(GraphWriter& writer, const TransformerConfig& config,
                                         TensorId input) {
  const std::int64_t hidden = config.hidden;
  const TensorId dense =
      writer.linear({.name = "transform", .in = hidden, .out = hidden, .bias = true}, input);
  const TensorId activated = writer.activation("transform.activation", {.width = hidden});
  writer.add("transform.activation", {.shape = Activation{ActivationKind::kGeluErf, hidden, false},
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
  if (config.block != BlockKind::kAfter) x = writer.norm("norm", x, config.norm, hidden);
  x = writer.scale("scaled", x, config.logit_scale, hidden);
  std::vector<TensorId> parameters{
      config.tied_embeddings
          ? word_table
          : writer.parameter("logits.weight", {{hidden, vocabulary}, ParameterCut::kTensor})};
  const bool bias = config.masked_language_head || config.logit_bias;
  if (bias)
    parameters.push_back(writer.parameter("logits.bias", {{vocabulary}, ParameterCut::kTensor}));
  const TensorId logits =
      writer.activation("logits", {.width = vocabulary, .cut = ActivationCut::kFeatures});
  writer.add("logits", {.shape = Linear{hidden, vocabulary, bias, LinearCut::kColumn},
                        .inputs = {x},
                        .outputs = {logits},
                        .parameters = std::move(parameters),
                        .kept = {x}});
  writer.loss(logits, vocabulary, config.logit_softcap);
  writer.end_layer(0);
}

}  // namespace

bool has_plain_factors(const TransformerConfig& c) {
  return c.embedding_scale == 1 && c.residual_scale == 1 && c.logit_scale == 1 &&
         c.logit_softcap == 0 && c.attention.softcap == 0;
}

ModelGraph build_transformer(const TransformerConfig& config, const std::string& name,
                             const std::string& family, const std::string& where) {
  GraphWriter writer(name, family, where);
  writer.set_initial_deviations(config.initial_deviation, config.initial_residual_deviation);
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
