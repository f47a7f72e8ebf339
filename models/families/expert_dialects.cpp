#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

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

/// DeepSeek-V2, V3 and Kimi K2. Multi-token prediction layers (num_nextn_predict_layers), which
/// serve an additional loss, are left out.
TransformerConfig read_deepseek(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_gated_decoder(family, reader);
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

constexpr std::array<Family, 8> kExpertFamilies{
    {{.model_type = "deepseek_v2",
      .architecture = "DeepseekV2ForCausalLM",
      .read = read_deepseek,
      .vocabulary = 32000,
      .positions = 2048,
      .hidden = 4096,
      .layers = 32,
      .heads = 32,
      .feed_forward = 11008,
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
      .experts_per_token = 4},
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
      .experts_per_token = 2},
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
      .experts_per_token = 2},
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
