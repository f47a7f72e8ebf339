#include "models/builders/transformer_builder.hpp"

namespace meshwright {
namespace {

struct Heads {
  TensorId queries, keys, values;
};

/// Q, K and V in one GEMM: [B, T, H] → [B, T, A D], [B, T, G D], [B, T, G D].
Heads write_grouped_projections(GraphWriter& writer, const TransformerConfig& config,
                                const LayerConfig& layer, TensorId input) {
  const AttentionConfig& a = config.attention;
  const std::int64_t queries = a.heads * a.head_size;
  const std::int64_t keys = a.key_value_heads * a.head_size;
  const std::vector<TensorId> projected = writer.linears({.name = "attention.query_key_value",
                                                          .in = config.hidden,
                                                          .out = queries + 2 * keys,
                                                          .bias = a.projection_bias,
                                                          .cut = LinearCut::kColumn,
                                                          .output_widths = {queries, keys, keys}},
                                                         input);
  Heads heads{projected[0], projected[1], projected[2]};
  if (a.query_key_norm != QueryKeyNorm::kNone && layer.query_key_norm) {
    NormShape shape = config.norm;
    shape.weighted = a.query_key_norm != QueryKeyNorm::kUnweightedPerHead;
    const bool per_head = a.query_key_norm != QueryKeyNorm::kAllHeads;
    const auto norm = [&](std::string_view name, TensorId unnormed, std::int64_t width) {
      return writer.head_norm(name, unnormed, shape, width, per_head ? a.head_size : 0);
    };
    heads.queries = norm("attention.query_norm", heads.queries, queries);
    heads.keys = norm("attention.key_norm", heads.keys, keys);
  }
  if (layer.temperature) {
    const TensorId scaled = writer.activation("attention.scaled_query",
                                              {.width = queries, .cut = ActivationCut::kFeatures});
    writer.add("attention.temperature",
               {.shape = RotaryEmbedding{.width = queries, .temperature = layer.temperature},
                .inputs = {heads.queries},
                .outputs = {scaled}});
    heads.queries = scaled;
  }
  if (!a.rotary || !layer.rotary) return heads;
  const Heads rotated{
      writer.activation("attention.rotated_query",
                        {.width = queries, .cut = ActivationCut::kFeatures}),
      writer.activation("attention.rotated_key", {.width = keys, .cut = ActivationCut::kFeatures}),
      heads.values};
  writer.add("attention.rotary",
             {.shape = RotaryEmbedding{queries + keys, a.rotated_size.value_or(0), a.pairs,
                                       layer.angles.value_or(a.angles)},
              .inputs = {heads.queries, heads.keys},
              .outputs = {rotated.queries, rotated.keys}});
  return rotated;
}

NormShape latent_norm(const AttentionConfig& a) {
  return {.kind = NormKind::kRmsNorm, .epsilon = a.latent_norm_epsilon};
}

/// Queries of latent attention, through the low-rank compression if the model has one.
TensorId write_latent_queries(GraphWriter& writer, const TransformerConfig& config,
                              TensorId input) {
  const AttentionConfig& a = config.attention;
  const LatentAttention& l = *a.latent;
  const std::int64_t queries = a.heads * (l.positionless_size + l.rotary_size);
  if (!l.query_rank)
    return writer.linear(
        {.name = "attention.query", .in = config.hidden, .out = queries, .cut = LinearCut::kColumn},
        input);
  const TensorId compressed = writer.linear({.name = "attention.query_down",
                                             .in = config.hidden,
                                             .out = *l.query_rank,
                                             .bias = a.projection_bias},
                                            input);
  const TensorId normed =
      writer.norm("attention.query_norm", compressed, latent_norm(a), *l.query_rank);
  return writer.linear({.name = "attention.query_up",
                        .in = *l.query_rank,
                        .out = queries,
                        .cut = LinearCut::kColumn},
                       normed);
}

/// Latent attention in training (arXiv 2405.04434, section 2.1): keys and values are expanded from
/// one small vector per token; the rotated part of the key is shared by all heads.
Heads write_latent_projections(GraphWriter& writer, const TransformerConfig& config,
                               TensorId input) {
  const AttentionConfig& a = config.attention;
  const LatentAttention& l = *a.latent;
  const TensorId queries = write_latent_queries(writer, config, input);
  const std::vector<TensorId> compressed =
      writer.linears({.name = "attention.key_value_down",
                      .in = config.hidden,
                      .out = l.key_value_rank + l.rotary_size,
                      .bias = a.projection_bias,
                      .output_widths = {l.key_value_rank, l.rotary_size}},
                     input);
  const TensorId normed =
      writer.norm("attention.key_value_norm", compressed[0], latent_norm(a), l.key_value_rank);
  const std::int64_t positionless = a.heads * l.positionless_size;
  const std::vector<TensorId> expanded =
      writer.linears({.name = "attention.key_value_up",
                      .in = l.key_value_rank,
                      .out = positionless + a.heads * a.value_size,
                      .cut = LinearCut::kColumn,
                      .output_widths = {positionless, a.heads * a.value_size}},
                     normed);
  const std::int64_t width = a.heads * (l.positionless_size + l.rotary_size);
  const ActivationTensor per_head{.width = width, .cut = ActivationCut::kFeatures};
  const TensorId rotated_queries = writer.activation("attention.rotated_query", per_head);
  const TensorId keys = writer.activation("attention.rotated_key", per_head);
  writer.add("attention.rotary",
             {.shape = RotaryEmbedding{(a.heads + 1) * l.rotary_size, 0, a.pairs, a.angles},
              .inputs = {queries, expanded[0], compressed[1]},
              .outputs = {rotated_queries, keys}});
  return {rotated_queries, keys, expanded[1]};
}

/// softmax(Q K^T) V. Saves Q, K, V and, if attention is not fused, the probabilities; with dropout
/// also its mask and result (Korthikanti et al., arXiv 2205.05198, section 4.1). Tensors marked
/// `per_key` are not saved by fused attention.
TensorId write_attention_core(GraphWriter& writer, const AttentionConfig& a,
                              const LayerConfig& layer, const Heads& heads) {
  const std::int64_t key_size =
      a.latent ? a.latent->positionless_size + a.latent->rotary_size : a.head_size;
  const ActivationTensor scores{.width = a.heads, .per_key = true, .cut = ActivationCut::kFeatures};
  std::vector<TensorId> kept{heads.queries, heads.keys, heads.values,
                             writer.activation("attention.probabilities", scores)};
  if (a.dropout > 0) {
    ActivationTensor mask = scores;
    mask.element = ElementWidth::kMask;
    kept.push_back(writer.activation("attention.dropout_mask", mask));
    kept.push_back(writer.activation("attention.dropped_probabilities", scores));
  }
  std::vector<TensorId> parameters;
  if (a.sinks)
    parameters.push_back(writer.parameter("attention.sinks", {{a.heads}, ParameterCut::kTensor}));
  const TensorId context = writer.activation(
      "attention.context", {.width = a.heads * a.value_size, .cut = ActivationCut::kFeatures});
  writer.add("attention.core",
             {.shape = Attention{.heads = a.heads,
                                 .key_value_heads = a.key_value_heads,
                                 .key_size = key_size,
                                 .value_size = a.value_size,
                                 .causal = a.causal,
                                 .window = layer.window,
                                 .chunk = layer.chunk,
                                 .dropout = a.dropout,
                                 .scale = layer.score_scale ? layer.score_scale : a.scale,
                                 .softcap = a.softcap},
              .inputs = {heads.queries, heads.keys, heads.values},
              .outputs = {context},
              .parameters = std::move(parameters),
              .kept = std::move(kept)});
  return context;
}

}  // namespace

TensorId write_attention(GraphWriter& writer, const TransformerConfig& config,
                         const LayerConfig& layer, TensorId input) {
  const AttentionConfig& a = config.attention;
  const Heads heads = a.latent ? write_latent_projections(writer, config, input)
                               : write_grouped_projections(writer, config, layer, input);
  const TensorId context = write_attention_core(writer, a, layer, heads);
  return writer.linear({.name = "attention.output",
                        .in = a.heads * a.value_size,
                        .out = config.hidden,
                        .bias = a.output_bias,
                        .cut = LinearCut::kRow,
                        .into_residual = true},
                       context);
}

}  // namespace meshwright
