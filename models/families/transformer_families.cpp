// One reader per group of model types that share their keys, over one table of defaults. A missing
// key takes the default of the HuggingFace configuration class of that model_type
// (huggingface/transformers, src/transformers/models/*/configuration_*.py). Where transformers 4
// and 5 write different names, or the class has an `attribute_map`, every name is read.
#include "models/families/transformer_families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

enum class Dialect : std::uint8_t { kLlama, kGpt2, kBert, kUngated, kExperts, kDeepSeek };

/// What a missing key means. Absent optionals: the class computes it from other keys.
struct Family {
  std::string_view model_type, architecture;
  Dialect dialect = Dialect::kLlama;
  std::int64_t vocabulary = 0, positions = 0, hidden = 0, layers = 0, heads = 0;
  std::optional<std::int64_t> key_value_heads = {}, head_size = {};
  std::int64_t feed_forward = 0;
  std::optional<std::int64_t> window = {};
  std::int64_t experts = 0, experts_per_token = 0, expert_width = 0;
};

constexpr std::array<Family, 16> kFamilies{{
    {"bert", "BertForMaskedLM", Dialect::kBert, 30522, 512, 768, 12, 12, {}, {}, 3072},
    {.model_type = "deepseek_v2",
     .architecture = "DeepseekV2ForCausalLM",
     .dialect = Dialect::kDeepSeek,
     .vocabulary = 32000,
     .positions = 2048,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .feed_forward = 11008,
     .expert_width = 1407},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .dialect = Dialect::kDeepSeek,
     .vocabulary = 129280,
     .positions = 4096,
     .hidden = 7168,
     .layers = 61,
     .heads = 128,
     .feed_forward = 18432,
     .experts = 256,
     .experts_per_token = 8,
     .expert_width = 2048},
    {"gpt2", "GPT2LMHeadModel", Dialect::kGpt2, 50257, 1024, 768, 12, 12},
    {.model_type = "gpt_oss",
     .architecture = "GptOssForCausalLM",
     .dialect = Dialect::kExperts,
     .vocabulary = 201088,
     .positions = 131072,
     .hidden = 2880,
     .layers = 36,
     .heads = 64,
     .key_value_heads = 8,
     .head_size = 64,
     .feed_forward = 2880,
     .window = 128,
     .experts = 128,
     .experts_per_token = 4},
    // xai-org/grok-1 as hpcai-tech/grok-1 and others describe it; not a part of transformers.
    {.model_type = "grok-1",
     .architecture = "Grok1ModelForCausalLM",
     .dialect = Dialect::kExperts,
     .vocabulary = 32000,
     .positions = 4096,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .key_value_heads = 32,
     .feed_forward = 32768,
     .experts = 8,
     .experts_per_token = 2},
    {.model_type = "kimi_k2",
     .architecture = "KimiK2ForCausalLM",
     .dialect = Dialect::kDeepSeek,
     .vocabulary = 163840,
     .positions = 131072,
     .hidden = 7168,
     .layers = 61,
     .heads = 64,
     .feed_forward = 18432,
     .experts = 384,
     .experts_per_token = 8,
     .expert_width = 2048},
    {"llama", "LlamaForCausalLM", Dialect::kLlama, 32000, 2048, 4096, 32, 32, {}, {}, 11008},
    {"mistral",
     "MistralForCausalLM",
     Dialect::kLlama,
     32000,
     131072,
     4096,
     32,
     32,
     8,
     {},
     14336,
     4096},
    {.model_type = "mixtral",
     .architecture = "MixtralForCausalLM",
     .dialect = Dialect::kExperts,
     .vocabulary = 32000,
     .positions = 131072,
     .hidden = 4096,
     .layers = 32,
     .heads = 32,
     .key_value_heads = 8,
     .feed_forward = 14336,
     .experts = 8,
     .experts_per_token = 2},
    {"nemotron",
     "NemotronForCausalLM",
     Dialect::kUngated,
     256000,
     4096,
     6144,
     32,
     48,
     {},
     {},
     24576},
    {"qwen2",
     "Qwen2ForCausalLM",
     Dialect::kLlama,
     151936,
     32768,
     4096,
     32,
     32,
     32,
     {},
     22016,
     4096},
    {.model_type = "qwen2_moe",
     .architecture = "Qwen2MoeForCausalLM",
     .dialect = Dialect::kExperts,
     .vocabulary = 151936,
     .positions = 32768,
     .hidden = 2048,
     .layers = 24,
     .heads = 16,
     .key_value_heads = 16,
     .feed_forward = 5632,
     .window = 4096,
     .experts = 60,
     .experts_per_token = 4,
     .expert_width = 1408},
    {"qwen3", "Qwen3ForCausalLM", Dialect::kLlama, 151936, 32768, 4096, 32, 32, 32, 128, 22016,
     4096},
    {.model_type = "qwen3_moe",
     .architecture = "Qwen3MoeForCausalLM",
     .dialect = Dialect::kExperts,
     .vocabulary = 151936,
     .positions = 32768,
     .hidden = 2048,
     .layers = 24,
     .heads = 32,
     .key_value_heads = 4,
     .feed_forward = 6144,
     .window = 4096,
     .experts = 128,
     .experts_per_token = 8,
     .expert_width = 768},
    {"starcoder2",
     "Starcoder2ForCausalLM",
     Dialect::kUngated,
     49152,
     4096,
     3072,
     30,
     24,
     2,
     {},
     12288},
}};

bool is_qwen(const Family& family) { return family.model_type.starts_with("qwen"); }
bool is_qwen2(const Family& family) { return family.model_type.starts_with("qwen2"); }
bool is_grok(const Family& family) { return family.model_type == "grok-1"; }
bool is_gpt_oss(const Family& family) { return family.model_type == "gpt_oss"; }

// ---- parts shared by the dialects -----------------------------------------------------------

/// Activations of gated feed-forward layers; their costs are equal.
const std::vector<std::string> kGatedActivations{"silu", "swish", "gelu", "gelu_pytorch_tanh",
                                                 "relu"};
const std::vector<std::string> kPlainActivations{
    "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "relu", "relu2"};

ActivationKind plain_activation(const std::string& name) {
  if (name == "relu2") return ActivationKind::kSquaredRelu;
  return name == "relu" ? ActivationKind::kRelu : ActivationKind::kGelu;
}

/// "1, 2, 4, …": divisors of `value` up to `most`, at most the twelve nearest to `wanted`.
std::string divisors_near(std::int64_t value, std::int64_t wanted, std::int64_t most) {
  constexpr std::size_t kShown = 12;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= most && d <= value; ++d)
    if (value % d == 0) divisors.push_back(d);
  std::sort(divisors.begin(), divisors.end(), [wanted](std::int64_t a, std::int64_t b) {
    const std::int64_t da = std::abs(a - wanted), db = std::abs(b - wanted);
    return da != db ? da < db : a < b;
  });
  divisors.resize(std::min(divisors.size(), kShown));
  std::sort(divisors.begin(), divisors.end());
  return fmt::format("{}", fmt::join(divisors, ", "));
}

// Sizes are compared only if all of them are valid: an error that follows from another is noise.

/// H / A, where A must divide H.
std::int64_t divided_head_size(ConfigReader& reader, std::string_view heads_key, std::int64_t heads,
                               std::int64_t hidden) {
  if (!reader.is_clean()) return 1;
  if (hidden % heads == 0) return hidden / heads;
  reader.complain(heads_key,
                  fmt::format("{} attention heads do not divide the hidden size {}", heads, hidden),
                  fmt::format("use one of: {}", divisors_near(hidden, heads, kMostHeads)));
  return 1;
}

void read_grouped_heads(const Family& family, ConfigReader& reader, TransformerConfig& config) {
  AttentionConfig& a = config.attention;
  a.heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  a.key_value_heads =
      reader.optional_dimension("num_key_value_heads", family.key_value_heads, kMostHeads)
          .value_or(a.heads);
  if (reader.is_clean() && a.heads % a.key_value_heads != 0)
    reader.complain(
        "num_key_value_heads",
        fmt::format("{} key/value heads do not divide the {} attention heads", a.key_value_heads,
                    a.heads),
        fmt::format("use one of: {}", divisors_near(a.heads, a.key_value_heads, a.heads)));
  const std::optional<std::int64_t> head_size =
      reader.optional_dimension("head_dim", family.head_size);
  a.head_size = head_size
                    ? *head_size
                    : divided_head_size(reader, "num_attention_heads", a.heads, config.hidden);
  a.value_size = a.head_size;
  if (reader.is_clean() && a.rotary && a.head_size % 2 != 0)
    reader.complain(head_size ? "head_dim" : "num_attention_heads",
                    fmt::format("head size must be even, got {}", a.head_size),
                    "use an even head size: rotary position embedding rotates pairs of elements");
}

std::vector<LayerConfig> read_layers(ConfigReader& reader, std::string_view key,
                                     std::int64_t absent) {
  return std::vector<LayerConfig>(
      static_cast<std::size_t>(reader.dimension(key, absent, kMostLayers)));
}

/// Layers with sliding-window attention: those listed in `layer_types`, else by the rule of the
/// model type (Mistral, Mixtral: all; Qwen: from max_window_layers on, if use_sliding_window;
/// gpt-oss: every other layer, starting with the first).
void read_windows(const Family& family, ConfigReader& reader, std::vector<LayerConfig>& layers) {
  const std::optional<std::int64_t> window =
      reader.optional_dimension("sliding_window", family.window);
  const bool may_slide = !is_qwen(family) || reader.flag("use_sliding_window", false);
  constexpr std::int64_t kQwenWindowLayers = 28;
  const std::int64_t first_sliding =
      is_qwen(family) ? reader.count("max_window_layers", kQwenWindowLayers, kMostLayers) : 0;
  const std::vector<std::string> types = reader.strings("layer_types");
  if (!reader.is_clean()) return;
  if (!types.empty() && types.size() != layers.size()) {
    reader.complain("layer_types",
                    fmt::format("expected {} entries, got {}", layers.size(), types.size()),
                    "give one entry per layer");
    return;
  }
  if (!window) return;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bool slides = may_slide && static_cast<std::int64_t>(i) >= first_sliding;
    if (is_gpt_oss(family)) slides = i % 2 == 0;
    if (!types.empty()) slides = types[i] == "sliding_attention";
    if (slides) layers[i].window = window;
  }
}

/// What all decoders with these keys share; the activation depends on the dialect.
TransformerConfig read_decoder(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  config.hidden = reader.dimension("hidden_size", family.hidden);
  config.vocabulary = reader.dimension("vocab_size", family.vocabulary);
  config.positions = reader.dimension("max_position_embeddings", family.positions);
  const bool tied = is_grok(family) || family.model_type == "starcoder2";
  config.tied_embeddings = reader.flag("tie_word_embeddings", tied);
  config.layers = read_layers(reader, "num_hidden_layers", family.layers);
  config.attention.dropout = reader.dropout("attention_dropout", 0);
  return config;
}

TransformerConfig read_common(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  reader.choice("hidden_act", "silu", kGatedActivations);
  return config;
}

/// Reads K under `key`; the model has `experts` experts.
int read_experts_per_token(ConfigReader& reader, std::string_view key, std::int64_t absent,
                           std::int64_t experts) {
  const std::int64_t chosen = reader.dimension(key, absent, kMostExperts);
  if (reader.is_clean() && chosen > experts)
    reader.complain(key, fmt::format("{} experts per token, but the model has {}", chosen, experts),
                    fmt::format("use a whole number from 1 to {}", experts));
  return static_cast<int>(chosen);
}

// ---- the dialects ---------------------------------------------------------------------------

TransformerConfig read_llama(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_common(family, reader);
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

/// Nemotron and StarCoder2: layer norms, grouped heads and two matrices per feed-forward layer.
TransformerConfig read_ungated(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  const bool nemotron = family.model_type == "nemotron";
  config.norm = NormKind::kLayerNorm;
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  FeedForwardConfig& f = config.feed_forward;
  f.width = reader.dimension("intermediate_size", family.feed_forward);
  f.activation = plain_activation(
      reader.choice("hidden_act", nemotron ? "relu2" : "gelu_pytorch_tanh", kPlainActivations));
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

/// Mixtral, Grok-1, Qwen-MoE and gpt-oss: grouped attention with experts in all layers or in some.
TransformerConfig read_experts(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_common(family, reader);
  const bool qwen = is_qwen(family), gpt_oss = is_gpt_oss(family);
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  const bool has_bias = family.model_type != "mixtral" && !is_grok(family);
  const bool bias = has_bias && reader.flag("attention_bias", gpt_oss);
  a.projection_bias = bias || (is_qwen2(family) && reader.flag("qkv_bias", true));
  a.output_bias = bias && !is_qwen2(family);
  a.query_key_norm = family.model_type == "qwen3_moe";
  a.sinks = gpt_oss;
  config.norm_of_branches = is_grok(family);
  // Constants of Grok-1: factors, and a cap on logits that fused attention applies on the way.
  if (is_grok(family))
    reader.ignore({"attn_output_multiplier", "max_attn_value", "embedding_multiplier_scale",
                   "output_multiplier_scale"});
  read_windows(family, reader, config.layers);

  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  ExpertsConfig& e = config.experts;
  // Qwen: the first name in transformers 4, the second in 5; Mixtral, gpt-oss: the second in both.
  e.experts = static_cast<int>(reader.dimension(
      reader.name_in_use({"num_experts", "num_local_experts"}), family.experts, kMostExperts));
  // OpenAI's configuration of gpt-oss has both names.
  e.experts_per_token = read_experts_per_token(
      reader, reader.name_in_use({"num_experts_per_tok", "experts_per_token"}),
      family.experts_per_token, e.experts);
  e.width = qwen ? reader.dimension("moe_intermediate_size", family.expert_width)
                 : config.feed_forward.width;
  e.bias = e.router_bias = gpt_oss;
  if (is_qwen2(family)) {
    constexpr std::int64_t kQwen2SharedWidth = 5632;
    e.shared_width =
        reader.count("shared_expert_intermediate_size", kQwen2SharedWidth, kLargestDimension);
    e.shared_gate = e.shared_width > 0;
  }
  const std::int64_t step = qwen ? reader.dimension("decoder_sparse_step", 1, kMostLayers) : 1;
  for (std::size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].uses_experts = (static_cast<std::int64_t>(i) + 1) % step == 0;
  if (qwen)
    for (const std::int64_t dense : reader.counts("mlp_only_layers", kMostLayers))
      if (static_cast<std::size_t>(dense) < config.layers.size())
        config.layers[static_cast<std::size_t>(dense)].uses_experts = false;
  return config;
}

void read_latent_attention(const Family& family, ConfigReader& reader, AttentionConfig& a) {
  a.heads = reader.dimension("num_attention_heads", family.heads, kMostHeads);
  a.key_value_heads = a.heads;
  a.value_size = reader.dimension("v_head_dim", 128);
  a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
  LatentAttention l;
  l.query_rank = reader.optional_dimension("q_lora_rank", 1536);
  l.key_value_rank = reader.dimension("kv_lora_rank", 512);
  l.rotary_size = reader.dimension("qk_rope_head_dim", 64);
  l.positionless_size = reader.dimension("qk_nope_head_dim", 128);
  a.latent = l;
}

/// DeepSeek-V2, V3 and Kimi K2. Multi-token prediction layers (num_nextn_predict_layers), which
/// serve an additional loss, are left out.
TransformerConfig read_deepseek(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_common(family, reader);
  read_latent_attention(family, reader, config.attention);
  const bool v2 = family.model_type == "deepseek_v2";
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  // Latent attention has no key/value heads; transformers 5 writes sizes that follow from others.
  reader.ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  ExpertsConfig& e = config.experts;
  e.experts = static_cast<int>(
      reader.count(reader.name_in_use({"n_routed_experts", "num_experts", "num_local_experts"}),
                   family.experts, kMostExperts));
  e.width = reader.dimension("moe_intermediate_size", family.expert_width);
  const std::int64_t shared = reader.count("n_shared_experts", v2 ? 0 : 1, kMostExperts);
  const std::int64_t first_dense = reader.count("first_k_dense_replace", v2 ? 0 : 3, kMostLayers);
  const std::int64_t step = reader.dimension("moe_layer_freq", 1, kMostLayers);
  reader.ignore({"num_experts_per_tok", "topk_method"});  // of a model without experts
  if (e.experts == 0) return config;
  e.experts_per_token =
      read_experts_per_token(reader, "num_experts_per_tok",
                             std::max<std::int64_t>(family.experts_per_token, 1), e.experts);
  e.shared_width = shared * e.width;
  e.score_correction =
      !v2 && reader.choice("topk_method", "noaux_tc",
                           {"noaux_tc", "greedy", "group_limited_greedy"}) == "noaux_tc";
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    config.layers[i].uses_experts = layer >= first_dense && layer % step == 0;
  }
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
      .activation =
          plain_activation(reader.choice("activation_function", "gelu_new", kPlainActivations)),
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
  config.feed_forward = {
      .width = reader.dimension("intermediate_size", family.feed_forward),
      .activation = plain_activation(reader.choice("hidden_act", "gelu", kPlainActivations)),
      .bias = true};
  return config;
}

}  // namespace

std::vector<std::string> transformer_families() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> family_of_architecture(const std::string& architecture) {
  for (const Family& family : kFamilies)
    if (family.architecture == architecture) return std::string(family.model_type);
  return std::nullopt;
}

TransformerConfig read_transformer(const std::string& family_name, ConfigReader& reader) {
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(),
                                   [&](const Family& f) { return f.model_type == family_name; });
  MW_CHECK(family != kFamilies.end());
  switch (family->dialect) {
    case Dialect::kLlama:
      return read_llama(*family, reader);
    case Dialect::kGpt2:
      return read_gpt2(*family, reader);
    case Dialect::kBert:
      return read_bert(*family, reader);
    case Dialect::kUngated:
      return read_ungated(*family, reader);
    case Dialect::kExperts:
      return read_experts(*family, reader);
    case Dialect::kDeepSeek:
      break;
  }
  return read_deepseek(*family, reader);
}

}  // namespace meshwright
