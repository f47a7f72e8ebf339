// Decoders whose attention and feed-forward layer read the same input: Phi, GPT-NeoX, Cohere and
// Falcon.
#include <fmt/format.h>

#include <array>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

TransformerConfig read_phi(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  read_norm(family, reader, "layer_norm_eps", NormKind::kLayerNorm, config);
  config.block = BlockKind::kParallel;
  read_grouped_heads(family, reader, config);
  constexpr double kRotatedPart = 0.5;
  read_rotary(family, reader, config, kRotatedPart);
  AttentionConfig& a = config.attention;
  a.projection_bias = a.output_bias = config.logit_bias = true;
  reader.refuse({"qk_layernorm"});
  config.embedding_dropout = reader.dropout("embd_pdrop", 0);
  config.residual_dropout = reader.dropout("resid_pdrop", 0);
  config.feed_forward = {.width = reader.dimension("intermediate_size", family.feed_forward),
                         .activation = read_plain_activation(reader, "hidden_act", "gelu_new"),
                         .bias = true};
  return config;
}

TransformerConfig read_gpt_neox(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  read_norm(family, reader, "layer_norm_eps", NormKind::kLayerNorm, config);
  if (reader.flag("use_parallel_residual", true)) config.block = BlockKind::kParallelNorms;
  AttentionConfig& a = config.attention;
  a.heads = a.key_value_heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  a.head_size = a.value_size =
      divided_head_size(reader, "num_attention_heads", a.heads, config.hidden);
  constexpr double kRotatedPart = 0.25;
  read_rotary(family, reader, config, kRotatedPart);
  a.projection_bias = a.output_bias = reader.flag("attention_bias", true);
  config.embedding_dropout = config.residual_dropout = reader.dropout("hidden_dropout", 0);
  config.feed_forward = {.width = reader.dimension("intermediate_size", family.feed_forward),
                         .activation = read_plain_activation(reader, "hidden_act", "gelu"),
                         .bias = true};
  reader.refuse({"is_decoder"});
  return config;
}

TransformerConfig read_cohere(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  read_norm(family, reader, "layer_norm_eps", NormKind::kLayerNorm, config);
  config.norm.biased = false;
  config.block = BlockKind::kParallel;
  read_grouped_heads(family, reader, config);
  read_rotary(family, reader, config);
  AttentionConfig& a = config.attention;
  a.pairs = RotaryPairs::kNeighbors;
  a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
  reader.refuse({"use_qk_norm"});
  constexpr double kLogitScale = 0.0625;
  config.logit_scale = reader.positive("logit_scale", kLogitScale);
  config.feed_forward = {.width = reader.dimension("intermediate_size", family.feed_forward),
                         .activation = read_gated_activation(reader, "hidden_act", "silu")};
  return config;
}

TransformerConfig read_falcon(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  read_norm(family, reader, "layer_norm_epsilon", NormKind::kLayerNorm, config);
  reader.refuse({"alibi"});
  const bool newer = reader.flag("new_decoder_architecture", false);
  const bool parallel = reader.flag("parallel_attn", true) || newer;
  const std::int64_t norms = reader.count("num_ln_in_parallel_attn", newer ? 2 : 1, 2);
  if (parallel) config.block = norms == 2 ? BlockKind::kParallelNorms : BlockKind::kParallel;
  AttentionConfig& a = config.attention;
  a.heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  const std::int64_t groups =
      reader.optional_dimension("num_kv_heads", std::nullopt, kMostHeads).value_or(a.heads);
  const bool one_key = !newer && reader.flag("multi_query", true);
  a.key_value_heads = newer ? groups : one_key ? 1 : a.heads;
  a.head_size = a.value_size =
      divided_head_size(reader, "num_attention_heads", a.heads, config.hidden);
  read_rotary(family, reader, config);
  a.projection_bias = a.output_bias = config.feed_forward.bias = reader.flag("bias", false);
  config.residual_dropout = reader.dropout("hidden_dropout", 0);
  const std::int64_t four_times = 4 * config.hidden;
  config.feed_forward.width =
      reader.optional_dimension("ffn_hidden_size", std::nullopt).value_or(four_times);
  config.feed_forward.activation = read_plain_activation(reader, "activation", "gelu");
  return config;
}

constexpr auto kParallelFamilies = std::to_array<Family>({{.model_type = "cohere",
                                                           .architecture = "CohereForCausalLM",
                                                           .read = read_cohere,
                                                           .vocabulary = 256000,
                                                           .positions = 8192,
                                                           .hidden = 8192,
                                                           .layers = 40,
                                                           .heads = 64,
                                                           .feed_forward = 22528,
                                                           .padding = 0,
                                                           .norm_epsilon = 1e-5,
                                                           .rotary_base = 500'000,
                                                           .tied = true},
                                                          {.model_type = "falcon",
                                                           .architecture = "FalconForCausalLM",
                                                           .read = read_falcon,
                                                           .vocabulary = 65024,
                                                           .positions = 2048,
                                                           .hidden = 4544,
                                                           .layers = 32,
                                                           .heads = 71,
                                                           .norm_epsilon = 1e-5,
                                                           .tied = true},
                                                          {.model_type = "gpt_neox",
                                                           .architecture = "GPTNeoXForCausalLM",
                                                           .read = read_gpt_neox,
                                                           .vocabulary = 50432,
                                                           .positions = 2048,
                                                           .hidden = 6144,
                                                           .layers = 44,
                                                           .heads = 64,
                                                           .feed_forward = 24576,
                                                           .norm_epsilon = 1e-5},
                                                          {.model_type = "phi",
                                                           .architecture = "PhiForCausalLM",
                                                           .read = read_phi,
                                                           .vocabulary = 51200,
                                                           .positions = 2048,
                                                           .hidden = 2048,
                                                           .layers = 24,
                                                           .heads = 32,
                                                           .feed_forward = 8192,
                                                           .norm_epsilon = 1e-5}});

}  // namespace

std::span<const Family> parallel_families() { return kParallelFamilies; }

}  // namespace meshwright
