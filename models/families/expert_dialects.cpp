#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kMostExpertGroups = 64;

/// Reads K under `key`; the model has `experts` experts.
int read_experts_per_token(ConfigReader& reader, std::string_view key, std::int64_t absent,
                           std::int64_t experts) {
  const std::int64_t chosen = reader.dimension(key, absent, kMostExperts);
  if (reader.is_clean() && chosen > experts)
    reader.complain(key, fmt::format("{} experts per token, but the model has {}", chosen, experts),
                    fmt::format("use a whole number from 1 to {}", experts));
  return static_cast<int>(chosen);
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

/// Rotations of latent attention and the factor of its scores.
void read_latent_rotary(const Family& family, ConfigReader& reader, TransformerConfig& config) {
  AttentionConfig& a = config.attention;
  const bool neighbors = family.model_type == "deepseek_v2" || reader.flag("rope_interleave", true);
  a.pairs = neighbors ? RotaryPairs::kNeighbors : RotaryPairs::kHalves;
  if (!reader.is_clean()) return;
  const LatentAttention& l = *a.latent;
  a.angles = read_rotary_angles(reader, {l.rotary_size, config.positions}, family.rotary_base);
  const double factor = yarn_score_factor(reader);
  const auto size = static_cast<double>(l.positionless_size + l.rotary_size);
  if (factor != 1) a.scale = factor / std::sqrt(size);
}

/// Constants of Grok-1: factors and a cap on scores.
void read_grok_factors(ConfigReader& reader, TransformerConfig& config) {
  config.block = BlockKind::kBoth;
  constexpr double kEmbeddingScale = 78.38367176906169, kLogitScale = 0.5773502691896257;
  constexpr double kScoreScale = 0.08838834764831845, kScoreCap = 30;
  config.embedding_scale = reader.positive("embedding_multiplier_scale", kEmbeddingScale);
  config.logit_scale = reader.positive("output_multiplier_scale", kLogitScale);
  config.attention.scale = reader.positive("attn_output_multiplier", kScoreScale);
  config.attention.softcap = reader.positive("max_attn_value", kScoreCap);
  config.experts.activation = ActivationKind::kGegluErf;
}

/// gpt-oss clamps gate and up; the steepness of the gate is fixed in the kernels.
void read_clamped_activation(ConfigReader& reader, ExpertsConfig& e) {
  constexpr double kLimit = 7, kSteepness = 1.702;
  e.activation = ActivationKind::kClampedSwiGlu;
  reader.ignore({"initial_context_length"});  // OpenAI's name of a key of rope_scaling
  e.limit = reader.positive("swiglu_limit", kLimit);
  if (const double alpha = reader.positive("swiglu_alpha", kSteepness); alpha != kSteepness)
    reader.complain("swiglu_alpha", fmt::format("'swiglu_alpha' = {} is not supported", alpha),
                    fmt::format("use {}", kSteepness));
}

bool is_glm(const Family& family) { return family.model_type == "glm4_moe"; }

/// Which groups of experts a token may visit, and the weights of its experts.
void read_deepseek_router(const Family& family, ConfigReader& reader, ExpertsConfig& e) {
  const bool v2 = family.model_type == "deepseek_v2", one_group = v2 || is_glm(family);
  reader.choice("scoring_func", v2 ? "softmax" : "sigmoid", {v2 ? "softmax" : "sigmoid"});
  e.scale = reader.positive("routed_scaling_factor", one_group ? 1 : 2.5);
  const std::string method =
      v2 ? reader.choice("topk_method", "greedy", {"greedy", "group_limited_greedy"})
         : reader.choice("topk_method", "noaux_tc", {"noaux_tc", "greedy"});
  constexpr std::int64_t kGroups = 8, kChosenGroups = 4;
  const std::int64_t groups = std::max<std::int64_t>(
      reader.count("n_group", one_group ? 1 : kGroups, kMostExpertGroups), 1);
  const std::int64_t chosen = std::max<std::int64_t>(
      reader.count("topk_group", one_group ? 1 : kChosenGroups, kMostExpertGroups), 1);
  // transformers does not divide the weights of DeepSeek-V2 by their sum.
  e.normalized = !v2 && reader.flag("norm_topk_prob", true);
  if (v2) reader.ignore({"norm_topk_prob"});
  e.score = v2 ? RouterScore::kSoftmax : RouterScore::kSigmoid;
  e.score_correction = method == "noaux_tc";
  if (!reader.is_clean() || (v2 && method == "greedy")) return;
  if (e.experts % groups != 0 || chosen * (e.experts / groups) < e.experts_per_token)
    return reader.complain(
        "n_group",
        fmt::format("{} experts cannot form {} groups of which {} have {} experts for a token",
                    e.experts, groups, chosen, e.experts_per_token),
        "choose a number of groups that divides the experts");
  e.groups = static_cast<int>(groups);
  e.chosen_groups = static_cast<int>(chosen);
  e.scores_per_group = v2 ? 1 : 2;
}

/// Mixtral, Grok-1, Qwen-MoE and gpt-oss: grouped attention with experts in all layers or in some.
TransformerConfig read_experts(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  const bool qwen = is_qwen(family), gpt_oss = is_gpt_oss(family);
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  const bool has_bias = family.model_type != "mixtral" && !is_grok(family);
  const bool bias = has_bias && reader.flag("attention_bias", gpt_oss);
  a.projection_bias = bias || (is_qwen2(family) && reader.flag("qkv_bias", true));
  a.output_bias = bias && !is_qwen2(family);
  if (family.model_type == "qwen3_moe") a.query_key_norm = QueryKeyNorm::kPerHead;
  a.sinks = gpt_oss;
  if (is_grok(family)) read_grok_factors(reader, config);
  read_rotary(family, reader, config);
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
  if (gpt_oss) read_clamped_activation(reader, e);
  e.normalized = !qwen || reader.flag("norm_topk_prob", false);
  reader.refuse({"output_router_logits", "router_jitter_noise"});
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

/// Dense layers first, then shared and routed experts, chosen by groups.
void read_deepseek_experts(const Family& family, ConfigReader& reader, TransformerConfig& config) {
  const bool v2 = family.model_type == "deepseek_v2";
  ExpertsConfig& e = config.experts;
  e.experts = static_cast<int>(
      reader.count(reader.name_in_use({"n_routed_experts", "num_experts", "num_local_experts"}),
                   family.experts, kMostExperts));
  e.width = reader.dimension("moe_intermediate_size", family.expert_width);
  const std::int64_t shared = reader.count("n_shared_experts", v2 ? 2 : 1, kMostExperts);
  const std::int64_t usual_dense = v2 ? 0 : is_glm(family) ? 1 : 3;
  const std::int64_t first_dense = reader.count("first_k_dense_replace", usual_dense, kMostLayers);
  const std::int64_t step = reader.dimension("moe_layer_freq", 1, kMostLayers);
  reader.ignore({"num_experts_per_tok", "topk_method", "n_group", "topk_group", "scoring_func",
                 "routed_scaling_factor", "norm_topk_prob"});  // of a model without experts
  reader.refuse({"output_router_logits"});
  if (v2) reader.refuse({"mlp_bias"});
  if (e.experts == 0) return;
  e.experts_per_token =
      read_experts_per_token(reader, "num_experts_per_tok",
                             std::max<std::int64_t>(family.experts_per_token, 1), e.experts);
  e.shared_width = shared * e.width;
  read_deepseek_router(family, reader, e);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    config.layers[i].uses_experts = layer >= first_dense && layer % step == 0;
  }
}

/// DeepSeek-V2, V3 and Kimi K2. Multi-token prediction layers (num_nextn_predict_layers), which
/// serve an additional loss, are left out.
TransformerConfig read_deepseek(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  read_latent_attention(family, reader, config.attention);
  read_latent_rotary(family, reader, config);
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  // Latent attention has no key/value heads; transformers 5 writes sizes that follow from others.
  reader.ignore({"num_key_value_heads", "head_dim", "qk_head_dim"});
  read_deepseek_experts(family, reader, config);
  return config;
}

/// GLM-4.5: grouped attention of which half is rotated, and the experts of DeepSeek-V3.
TransformerConfig read_glm_experts(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  read_grouped_heads(family, reader, config);
  constexpr double kRotatedPart = 0.5;
  read_rotary(family, reader, config, kRotatedPart);
  config.attention.projection_bias = reader.flag("attention_bias", false);
  if (reader.flag("use_qk_norm", false)) config.attention.query_key_norm = QueryKeyNorm::kPerHead;
  config.feed_forward.width = reader.dimension("intermediate_size", family.feed_forward);
  read_deepseek_experts(family, reader, config);
  return config;
}

/// Llama 4: layers without positions see all keys, the others those of their chunk.
void read_llama4_attention(ConfigReader& reader, TransformerConfig& config) {
  AttentionConfig& a = config.attention;
  a.pairs = RotaryPairs::kNeighbors;
  a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
  if (reader.flag("use_qk_norm", true)) a.query_key_norm = QueryKeyNorm::kUnweightedPerHead;
  read_layers_without_positions(reader, config);
  constexpr std::int64_t kChunk = 8192, kInterval = 8192;
  constexpr double kGrowth = 0.1;
  const std::optional<std::int64_t> chunk =
      reader.optional_dimension("attention_chunk_size", kChunk);
  // Published configurations have a number in place of true.
  const bool tempered = reader.is_set("attn_temperature_tuning", true);
  const QueryTemperature temperature{reader.not_negative("attn_scale", kGrowth),
                                     reader.dimension("floor_scale", kInterval)};
  const std::vector<std::string> types =
      read_layer_types(reader, config.layers.size(), "chunked_attention");
  if (!chunk && std::ranges::find(types, "chunked_attention") != types.end())
    reader.complain("attention_chunk_size", "missing key, but some layers have chunked attention",
                    "give the number of positions in a chunk, such as 8192");
  if (!reader.is_clean()) return;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    LayerConfig& layer = config.layers[i];
    layer.query_key_norm = layer.rotary;
    if (!layer.rotary && tempered) layer.temperature = temperature;
    if (types.empty() ? layer.rotary : types[i] == "chunked_attention") layer.chunk = chunk;
  }
}

/// Layers listed in "moe_layers", or every N-th one.
void read_llama4_expert_layers(ConfigReader& reader, std::vector<LayerConfig>& layers) {
  const std::int64_t step = reader.dimension("interleave_moe_layer_step", 1, kMostLayers);
  if (!reader.has("moe_layers")) {
    for (std::size_t i = 0; i < layers.size(); ++i)
      layers[i].uses_experts = (static_cast<std::int64_t>(i) + 1) % step == 0;
    return;
  }
  for (const std::int64_t layer : reader.counts("moe_layers", kMostLayers))
    if (static_cast<std::size_t>(layer) < layers.size())
      layers[static_cast<std::size_t>(layer)].uses_experts = true;
}

/// The language model of Llama 4: a shared expert beside routed ones, whose inputs are scaled by
/// the sigmoid of their scores.
TransformerConfig read_llama4(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
  read_grouped_heads(family, reader, config);
  read_llama4_attention(reader, config);
  read_rotary(family, reader, config);
  config.feed_forward.width = reader.dimension("intermediate_size_mlp", family.feed_forward);
  ExpertsConfig& e = config.experts;
  e.experts = static_cast<int>(reader.dimension("num_local_experts", family.experts, kMostExperts));
  e.experts_per_token =
      read_experts_per_token(reader, "num_experts_per_tok", family.experts_per_token, e.experts);
  e.width = e.shared_width = reader.dimension("intermediate_size", family.expert_width);
  e.score = RouterScore::kSigmoid;
  e.normalized = false;
  e.weighted_inputs = true;
  reader.refuse({"output_router_logits"});
  reader.ignore({"router_jitter_noise", "for_llm_compressor"});  // transformers does not read them
  read_llama4_expert_layers(reader, config.layers);
  return config;
}

constexpr std::array<Family, 10> kExpertFamilies{
    {{.model_type = "deepseek_v2",
      .architecture = "DeepseekV2ForCausalLM",
      .read = read_deepseek,
      .vocabulary = 102400,
      .positions = 2048,
      .hidden = 4096,
      .layers = 32,
      .heads = 32,
      .feed_forward = 11008,
      .experts = 64,
      .expert_width = 1407},
     {.model_type = "deepseek_v3",
      .architecture = "DeepseekV3ForCausalLM",
      .read = read_deepseek,
      .vocabulary = 129280,
      .positions = 4096,
      .hidden = 7168,
      .layers = 61,
      .heads = 128,
      .feed_forward = 18432,
      .experts = 256,
      .experts_per_token = 8,
      .expert_width = 2048},
     {.model_type = "glm4_moe",
      .architecture = "Glm4MoeForCausalLM",
      .read = read_glm_experts,
      .vocabulary = 151552,
      .positions = 131072,
      .hidden = 4096,
      .layers = 46,
      .heads = 96,
      .key_value_heads = 8,
      .feed_forward = 10944,
      .experts = 128,
      .experts_per_token = 8,
      .expert_width = 1408,
      .norm_epsilon = 1e-5},
     {.model_type = "gpt_oss",
      .architecture = "GptOssForCausalLM",
      .read = read_experts,
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
      .experts_per_token = 4,
      .norm_epsilon = 1e-5,
      .rotary_base = 150'000},
     // xai-org/grok-1 as hpcai-tech/grok-1 and others describe it; not a part of transformers.
     {.model_type = "grok-1",
      .architecture = "Grok1ModelForCausalLM",
      .read = read_experts,
      .vocabulary = 32000,
      .positions = 4096,
      .hidden = 4096,
      .layers = 32,
      .heads = 32,
      .key_value_heads = 32,
      .feed_forward = 32768,
      .experts = 8,
      .experts_per_token = 2,
      .norm_epsilon = 1e-5,
      .tied = true},
     {.model_type = "kimi_k2",
      .architecture = "KimiK2ForCausalLM",
      .read = read_deepseek,
      .vocabulary = 163840,
      .positions = 131072,
      .hidden = 7168,
      .layers = 61,
      .heads = 64,
      .feed_forward = 18432,
      .experts = 384,
      .experts_per_token = 8,
      .expert_width = 2048},
     {.model_type = "llama4_text",
      .architecture = "Llama4ForCausalLM",
      .read = read_llama4,
      .vocabulary = 202048,
      .positions = 131072,
      .hidden = 5120,
      .layers = 48,
      .heads = 40,
      .key_value_heads = 8,
      .head_size = 128,
      .feed_forward = 16384,
      .experts = 16,
      .experts_per_token = 1,
      .expert_width = 8192,
      .norm_epsilon = 1e-5,
      .rotary_base = 500'000},
     {.model_type = "mixtral",
      .architecture = "MixtralForCausalLM",
      .read = read_experts,
      .vocabulary = 32000,
      .positions = 131072,
      .hidden = 4096,
      .layers = 32,
      .heads = 32,
      .key_value_heads = 8,
      .feed_forward = 14336,
      .experts = 8,
      .experts_per_token = 2,
      .norm_epsilon = 1e-5,
      .rotary_base = 1e6},
     {.model_type = "qwen2_moe",
      .architecture = "Qwen2MoeForCausalLM",
      .read = read_experts,
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
     {.model_type = "qwen3_moe",
      .architecture = "Qwen3MoeForCausalLM",
      .read = read_experts,
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
      .expert_width = 768}}};

}  // namespace

std::span<const Family> expert_families() { return kExpertFamilies; }

}  // namespace meshwright
