#include <fmt/format.h>

#include <array>
#include <cmath>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

bool is(const Family& family, std::string_view type) { return family.model_type == type; }

/// Factors of Granite; they are 1 in other families.
void read_granite_factors(ConfigReader& reader, TransformerConfig& config) {
  config.embedding_scale = reader.positive("embedding_multiplier", 1);
  config.residual_scale = reader.positive("residual_multiplier", 1);
  config.logit_scale = 1 / reader.positive("logits_scaling", 1);
  config.attention.scale = reader.positive("attention_multiplier", 1);
}

/// Llama and what differs from it by biases, norms of queries and keys, windows and factors.
TransformerConfig read_llama(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  AttentionConfig& a = config.attention;
  read_grouped_heads(family, reader, config);
  read_rotary(family, reader, config);
  const bool knows_bias = !is_qwen2(family) && !is(family, "mistral") && !is(family, "phi3");
  const bool bias = knows_bias && reader.flag("attention_bias", false);
  a.projection_bias = bias || is_qwen2(family);  // Qwen2 hard-codes it
  a.output_bias = bias;
  if (is(family, "qwen3")) a.query_key_norm = QueryKeyNorm::kPerHead;
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  const bool knows_feed_forward_bias =
      is(family, "llama") || is(family, "granite") || is(family, "smollm3");
  config.feed_forward.bias = knows_feed_forward_bias && reader.flag("mlp_bias", false);
  if (is(family, "granite")) read_granite_factors(reader, config);
  if (is(family, "smollm3")) read_layers_without_positions(reader, config);
  if (is(family, "smollm3")) reader.ignore({"sliding_window"});
  if (is(family, "smollm3") && reader.flag("use_sliding_window", false))
    read_windows(family, reader, config.layers);
  if (family.window || is_qwen(family)) read_windows(family, reader, config.layers);
  return config;
}

/// Phi-3 and GLM: a part of every head is rotated.
TransformerConfig read_partly_rotated(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  AttentionConfig& a = config.attention;
  read_grouped_heads(family, reader, config);
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  if (is(family, "phi3")) {
    read_rotary(family, reader, config, 1.0);
    read_windows(family, reader, config.layers);
    config.residual_dropout = reader.dropout("resid_pdrop", 0);
    reader.ignore({"embd_pdrop", "original_max_position_embeddings"});  // without rope_scaling
    return config;
  }
  read_rotary(family, reader, config, 0.5);
  a.pairs = RotaryPairs::kNeighbors;
  a.projection_bias = reader.flag("attention_bias", true);
  if (is(family, "glm4")) config.block = BlockKind::kBoth;
  return config;
}

/// OLMo: norms without parameters.
TransformerConfig read_olmo(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  config.feed_forward.activation = read_gated_activation(reader, "hidden_act", "silu");
  config.norm = {.kind = NormKind::kLayerNorm, .epsilon = family.norm_epsilon, .weighted = false};
  read_grouped_heads(family, reader, config);
  read_rotary(family, reader, config);
  config.attention.projection_bias = config.attention.output_bias =
      reader.flag("attention_bias", false);
  reader.refuse({"clip_qkv"});
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  return config;
}

/// OLMo 2 and 3: norms of all queries and of all keys, and of what branches add. In OLMo 3, three
/// of four layers have windows, and the others a context extension.
TransformerConfig read_newer_olmo(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  config.block = BlockKind::kBranch;
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
  a.query_key_norm = QueryKeyNorm::kAllHeads;
  if (!family.window) {
    read_rotary(family, reader, config);
    return config;
  }
  constexpr std::size_t kPattern = 4;
  const std::int64_t window = reader.dimension("sliding_window", *family.window);
  const std::vector<std::string> types = read_layer_types(reader, config.layers.size());
  if (!reader.is_clean()) return config;
  const RotarySizes sizes{a.head_size, config.positions, "full_attention"};
  a.angles = read_rotary_angles(reader, sizes, family.rotary_base);
  const RotaryAngles local = read_local_angles(reader, sizes, family.rotary_base);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    if (types.empty() ? (i + 1) % kPattern == 0 : types[i] == "full_attention") continue;
    config.layers[i].window = window;
    config.layers[i].angles = local;
  }
  return config;
}

/// Nemotron and StarCoder2: layer norms, grouped heads and two matrices per feed-forward layer.
TransformerConfig read_ungated(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  const bool nemotron = is(family, "nemotron");
  read_norm(family, reader, nemotron ? "norm_eps" : "norm_epsilon", NormKind::kLayerNorm, config);
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  FeedForwardConfig& f = config.feed_forward;
  f.width = reader.dimension("intermediate_size", family.feed_forward);
  f.activation =
      read_plain_activation(reader, "hidden_act", nemotron ? "relu2" : "gelu_pytorch_tanh");
  if (nemotron) {
    constexpr double kRotatedPart = 0.5;
    read_rotary(family, reader, config, kRotatedPart);
    config.norm.offset = 1;
    a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
    f.bias = reader.flag("mlp_bias", false);
    return config;
  }
  read_rotary(family, reader, config);
  a.projection_bias = a.output_bias = f.bias = reader.flag("use_bias", true);
  config.embedding_dropout = reader.dropout("embedding_dropout", 0);
  config.residual_dropout = reader.dropout("residual_dropout", 0);
  read_windows(family, reader, config.layers);
  return config;
}

/// OPT: positions start in row 2 of their table.
TransformerConfig read_opt(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  config.norm = {.kind = NormKind::kLayerNorm, .epsilon = 1e-5};
  config.learned_positions = true;
  config.first_position = 2;
  config.hidden = reader.dimension("hidden_size", family.hidden);
  config.vocabulary = reader.dimension("vocab_size", family.vocabulary);
  config.positions = reader.dimension("max_position_embeddings", family.positions);
  config.tied_embeddings = reader.flag("tie_word_embeddings", family.tied);
  config.layers = read_layers(reader, "num_hidden_layers", family.layers);
  read_padding(family, reader, config);
  AttentionConfig& a = config.attention;
  a.heads = a.key_value_heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  a.head_size = a.value_size =
      divided_head_size(reader, "num_attention_heads", a.heads, config.hidden);
  a.rotary = false;
  a.dropout = reader.dropout("attention_dropout", 0);
  constexpr double kDropout = 0.1;
  config.residual_dropout = reader.dropout("dropout", kDropout);
  config.feed_forward = {.width = reader.dimension("ffn_dim", family.feed_forward),
                         .activation = read_plain_activation(reader, "activation_function", "relu"),
                         .bias = reader.flag("enable_bias", true)};
  a.projection_bias = a.output_bias = config.feed_forward.bias;
  read_initial_deviation(family, reader, "init_std", config);
  if (!reader.flag("layer_norm_elementwise_affine", true)) config.norm.weighted = false;
  reader.refuse({"layerdrop", "_remove_final_layer_norm"});
  if (!reader.flag("do_layer_norm_before", true))
    reader.complain("do_layer_norm_before", "'do_layer_norm_before' = false is not supported",
                    "choose a model whose norms come before attention and feed-forward layers");
  if (reader.dimension("word_embed_proj_dim", config.hidden) != config.hidden)
    reader.complain("word_embed_proj_dim", "'word_embed_proj_dim' is not supported",
                    "choose a model whose embeddings have the hidden size");
  return config;
}

/// Scores of GPT-2: divided by sqrt(D), and by the number of the layer.
void read_score_scales(ConfigReader& reader, TransformerConfig& config) {
  const bool scaled = reader.flag("scale_attn_weights", true);
  const bool by_layer = reader.flag("scale_attn_by_inverse_layer_idx", false);
  const double scale = scaled ? 1 / std::sqrt(static_cast<double>(config.attention.head_size)) : 1;
  if (!scaled) config.attention.scale = scale;
  for (std::size_t i = 0; by_layer && i < config.layers.size(); ++i)
    config.layers[i].score_scale = scale / static_cast<double>(i + 1);
}

TransformerConfig read_gpt2(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  read_norm(family, reader, "layer_norm_epsilon", NormKind::kLayerNorm, config);
  config.learned_positions = true;
  config.hidden = reader.dimension(reader.name_in_use({"n_embd", "hidden_size"}), family.hidden);
  config.vocabulary = reader.dimension("vocab_size", family.vocabulary);
  std::string_view positions = reader.name_in_use({"n_positions", "max_position_embeddings"});
  if (reader.has("n_ctx") && !reader.has(positions)) positions = "n_ctx";  // of old files
  config.positions = reader.dimension(positions, family.positions);
  config.tied_embeddings = reader.flag("tie_word_embeddings", true);
  config.layers =
      read_layers(reader, reader.name_in_use({"n_layer", "num_hidden_layers"}), family.layers);
  constexpr double kDropout = 0.1;
  config.embedding_dropout = reader.dropout("embd_pdrop", kDropout);
  config.residual_dropout = reader.dropout("resid_pdrop", kDropout);
  AttentionConfig& a = config.attention;
  const std::string_view heads = reader.name_in_use({"n_head", "num_attention_heads"});
  a.heads = a.key_value_heads = reader.dimension(heads, family.heads, kMostHeads);
  a.head_size = a.value_size = divided_head_size(reader, heads, a.heads, config.hidden);
  a.rotary = false;
  a.dropout = reader.dropout("attn_pdrop", kDropout);
  a.projection_bias = a.output_bias = true;
  const std::int64_t four_times = 4 * config.hidden;
  config.feed_forward = {
      .width = reader.optional_dimension("n_inner", std::nullopt).value_or(four_times),
      .activation = read_plain_activation(reader, "activation_function", "gelu_new"),
      .bias = true};
  read_score_scales(reader, config);
  reader.refuse({"add_cross_attention"});
  read_initial_deviation(family, reader, "initializer_range", config);
  config.initial_residual_deviation =
      config.initial_deviation / std::sqrt(2 * static_cast<double>(config.layers.size()));
  return config;
}

/// Encoder with the masked-language-model head, without the pooler, which that loss does not use.
TransformerConfig read_bert(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  read_norm(family, reader, "layer_norm_eps", NormKind::kLayerNorm, config);
  read_initial_deviation(family, reader, "initializer_range", config);
  reader.refuse({"is_decoder", "add_cross_attention"});
  config.block = BlockKind::kAfter;
  config.learned_positions = config.masked_language_head = true;
  config.hidden = reader.dimension("hidden_size", family.hidden);
  config.vocabulary = reader.dimension("vocab_size", family.vocabulary);
  config.positions = reader.dimension("max_position_embeddings", family.positions);
  config.token_types = reader.dimension("type_vocab_size", 2);
  reader.ignore_if("position_embedding_type", "absolute");  // others add tables per layer
  config.tied_embeddings = reader.flag("tie_word_embeddings", true);
  config.layers = read_layers(reader, "num_hidden_layers", family.layers);
  constexpr double kDropout = 0.1;
  config.embedding_dropout = config.residual_dropout =
      reader.dropout("hidden_dropout_prob", kDropout);
  AttentionConfig& a = config.attention;
  a.heads = a.key_value_heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  a.head_size = a.value_size =
      divided_head_size(reader, "num_attention_heads", a.heads, config.hidden);
  a.rotary = a.causal = false;
  a.dropout = reader.dropout("attention_probs_dropout_prob", kDropout);
  a.projection_bias = a.output_bias = true;
  config.feed_forward = {.width = reader.dimension("intermediate_size", family.feed_forward),
                         .activation = read_plain_activation(reader, "hidden_act", "gelu"),
                         .bias = true};
  return config;
}

constexpr auto kDenseFamilies = std::to_array<Family>({{.model_type = "bert",
                                                        .architecture = "BertForMaskedLM",
                                                        .read = read_bert,
                                                        .vocabulary = 30522,
                                                        .positions = 512,
                                                        .hidden = 768,
                                                        .layers = 12,
                                                        .heads = 12,
                                                        .feed_forward = 3072,
                                                        .norm_epsilon = 1e-12},
                                                       {.model_type = "glm",
                                                        .architecture = "GlmForCausalLM",
                                                        .read = read_partly_rotated,
                                                        .vocabulary = 151552,
                                                        .positions = 131072,
                                                        .hidden = 4096,
                                                        .layers = 40,
                                                        .heads = 32,
                                                        .key_value_heads = 2,
                                                        .head_size = 128,
                                                        .feed_forward = 13696,
                                                        .padding = 151329,
                                                        .norm_epsilon = 1.5625e-07},
                                                       {.model_type = "glm4",
                                                        .architecture = "Glm4ForCausalLM",
                                                        .read = read_partly_rotated,
                                                        .vocabulary = 151552,
                                                        .positions = 131072,
                                                        .hidden = 4096,
                                                        .layers = 40,
                                                        .heads = 32,
                                                        .key_value_heads = 2,
                                                        .head_size = 128,
                                                        .feed_forward = 13696,
                                                        .padding = 151329,
                                                        .norm_epsilon = 1.5625e-07},
                                                       {.model_type = "gpt2",
                                                        .architecture = "GPT2LMHeadModel",
                                                        .read = read_gpt2,
                                                        .vocabulary = 50257,
                                                        .positions = 1024,
                                                        .hidden = 768,
                                                        .layers = 12,
                                                        .heads = 12,
                                                        .norm_epsilon = 1e-5},
                                                       {.model_type = "granite",
                                                        .architecture = "GraniteForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 32000,
                                                        .positions = 2048,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 11008},
                                                       {.model_type = "llama",
                                                        .architecture = "LlamaForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 32000,
                                                        .positions = 2048,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 11008},
                                                       {.model_type = "mistral",
                                                        .architecture = "MistralForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 32000,
                                                        .positions = 131072,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .key_value_heads = 8,
                                                        .feed_forward = 14336,
                                                        .window = 4096},
                                                       {.model_type = "nemotron",
                                                        .architecture = "NemotronForCausalLM",
                                                        .read = read_ungated,
                                                        .vocabulary = 256000,
                                                        .positions = 4096,
                                                        .hidden = 6144,
                                                        .layers = 32,
                                                        .heads = 48,
                                                        .feed_forward = 24576,
                                                        .norm_epsilon = 1e-5,
                                                        .initial_deviation = 0.0134},
                                                       {.model_type = "olmo",
                                                        .architecture = "OlmoForCausalLM",
                                                        .read = read_olmo,
                                                        .vocabulary = 50304,
                                                        .positions = 2048,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 11008,
                                                        .padding = 1,
                                                        .norm_epsilon = 1e-5},
                                                       {.model_type = "olmo2",
                                                        .architecture = "Olmo2ForCausalLM",
                                                        .read = read_newer_olmo,
                                                        .vocabulary = 50304,
                                                        .positions = 2048,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 11008,
                                                        .padding = 1,
                                                        .norm_epsilon = 1e-5},
                                                       {.model_type = "olmo3",
                                                        .architecture = "Olmo3ForCausalLM",
                                                        .read = read_newer_olmo,
                                                        .vocabulary = 50304,
                                                        .positions = 2048,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 11008,
                                                        .window = 4096,
                                                        .padding = 1,
                                                        .norm_epsilon = 1e-5,
                                                        .rotary_base = 5e5},
                                                       {.model_type = "opt",
                                                        .architecture = "OPTForCausalLM",
                                                        .read = read_opt,
                                                        .vocabulary = 50272,
                                                        .positions = 2048,
                                                        .hidden = 768,
                                                        .layers = 12,
                                                        .heads = 12,
                                                        .feed_forward = 3072,
                                                        .padding = 1,
                                                        .tied = true},
                                                       {.model_type = "phi3",
                                                        .architecture = "Phi3ForCausalLM",
                                                        .read = read_partly_rotated,
                                                        .vocabulary = 32064,
                                                        .positions = 4096,
                                                        .hidden = 3072,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .feed_forward = 8192,
                                                        .padding = 32000,
                                                        .norm_epsilon = 1e-5},
                                                       {.model_type = "qwen2",
                                                        .architecture = "Qwen2ForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 151936,
                                                        .positions = 32768,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .key_value_heads = 32,
                                                        .feed_forward = 22016,
                                                        .window = 4096},
                                                       {.model_type = "qwen3",
                                                        .architecture = "Qwen3ForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 151936,
                                                        .positions = 32768,
                                                        .hidden = 4096,
                                                        .layers = 32,
                                                        .heads = 32,
                                                        .key_value_heads = 32,
                                                        .head_size = 128,
                                                        .feed_forward = 22016,
                                                        .window = 4096},
                                                       {.model_type = "smollm3",
                                                        .architecture = "SmolLM3ForCausalLM",
                                                        .read = read_llama,
                                                        .vocabulary = 128256,
                                                        .positions = 32768,
                                                        .hidden = 2048,
                                                        .layers = 36,
                                                        .heads = 16,
                                                        .key_value_heads = 4,
                                                        .feed_forward = 11008,
                                                        .padding = 128004,
                                                        .rotary_base = 2e6,
                                                        .tied = true},
                                                       {.model_type = "starcoder2",
                                                        .architecture = "Starcoder2ForCausalLM",
                                                        .read = read_ungated,
                                                        .vocabulary = 49152,
                                                        .positions = 4096,
                                                        .hidden = 3072,
                                                        .layers = 30,
                                                        .heads = 24,
                                                        .key_value_heads = 2,
                                                        .feed_forward = 12288,
                                                        .norm_epsilon = 1e-5,
                                                        .initial_deviation = 0.018042,
                                                        .tied = true}});

}  // namespace

std::span<const Family> dense_families() { return kDenseFamilies; }

}  // namespace meshwright
