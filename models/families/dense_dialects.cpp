#include <fmt/format.h>

#include <array>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

/// The rotated part of every head: int(D * factor), as in transformers. NVIDIA's first files of
/// Nemotron call the factor rope_percent or rope_percentage.
void read_rotated_part(ConfigReader& reader, AttentionConfig& a) {
  const std::string_view key =
      reader.name_in_use({"partial_rotary_factor", "rope_percent", "rope_percentage"});
  constexpr double kNemotronFactor = 0.5;
  const double factor = reader.share(key, kNemotronFactor);
  if (!reader.is_clean()) return;
  a.rotated_size = static_cast<std::int64_t>(static_cast<double>(a.head_size) * factor);
  if (*a.rotated_size > 0 && *a.rotated_size % 2 == 0) return;
  reader.complain(
      key,
      fmt::format("{} of the {} elements of a head would be rotated", *a.rotated_size, a.head_size),
      "choose a factor that gives a positive even number: rotary position embedding "
      "rotates pairs of elements");
}

TransformerConfig read_llama(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  AttentionConfig& a = config.attention;
  read_grouped_heads(family, reader, config);
  const bool knows_bias = family.model_type == "llama" || family.model_type == "qwen3";
  const bool bias = knows_bias && reader.flag("attention_bias", false);
  a.projection_bias = bias || is_qwen2(family);  // Qwen2 hard-codes it
  a.output_bias = bias;
  a.query_key_norm = family.model_type == "qwen3";
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  config.feed_forward.bias = family.model_type == "llama" && reader.flag("mlp_bias", false);
  if (family.window) read_windows(family, reader, config.layers);
  return config;
}

/// Nemotron and StarCoder2: layer norms, grouped heads and two matrices per feed-forward layer.
TransformerConfig read_ungated(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  const bool nemotron = family.model_type == "nemotron";
  config.norm = NormKind::kLayerNorm;
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  FeedForwardConfig& f = config.feed_forward;
  f.width = reader.dimension("intermediate_size", family.feed_forward);
  f.activation =
      read_plain_activation(reader, "hidden_act", nemotron ? "relu2" : "gelu_pytorch_tanh");
  if (nemotron) {
    read_rotated_part(reader, a);
    a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
    f.bias = reader.flag("mlp_bias", false);
    return config;
  }
  a.projection_bias = a.output_bias = f.bias = reader.flag("use_bias", true);
  config.embedding_dropout = reader.dropout("embedding_dropout", 0);
  config.residual_dropout = reader.dropout("residual_dropout", 0);
  read_windows(family, reader, config.layers);
  return config;
}

TransformerConfig read_gpt2(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  config.norm = NormKind::kLayerNorm;
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
  return config;
}

/// Encoder with the masked-language-model head, without the pooler, which that loss does not use.
TransformerConfig read_bert(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  config.norm = NormKind::kLayerNorm;
  config.norm_after = config.learned_positions = config.masked_language_head = true;
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

constexpr std::array<Family, 8> kDenseFamilies{
    {{"bert", "BertForMaskedLM", read_bert, 30522, 512, 768, 12, 12, {}, {}, 3072},
     {"gpt2", "GPT2LMHeadModel", read_gpt2, 50257, 1024, 768, 12, 12},
     {"llama", "LlamaForCausalLM", read_llama, 32000, 2048, 4096, 32, 32, {}, {}, 11008},
     {"mistral", "MistralForCausalLM", read_llama, 32000, 131072, 4096, 32, 32, 8, {}, 14336, 4096},
     {"nemotron", "NemotronForCausalLM", read_ungated, 256000, 4096, 6144, 32, 48, {}, {}, 24576},
     {"qwen2", "Qwen2ForCausalLM", read_llama, 151936, 32768, 4096, 32, 32, 32, {}, 22016, 4096},
     {"qwen3", "Qwen3ForCausalLM", read_llama, 151936, 32768, 4096, 32, 32, 32, 128, 22016, 4096},
     {"starcoder2",
      "Starcoder2ForCausalLM",
      read_ungated,
      49152,
      4096,
      3072,
      30,
      24,
      2,
      {},
      12288}}};

}  // namespace

std::span<const Family> dense_families() { return kDenseFamilies; }

}  // namespace meshwright
