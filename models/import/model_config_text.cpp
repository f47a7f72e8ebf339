#include "models/import/model_config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/value_named.hpp"
#include "models/families/load_model.hpp"

namespace meshwright {
namespace {

using Json = nlohmann::ordered_json;

std::string_view activation_word(ActivationKind kind) {
  constexpr std::array<std::string_view, 9> kNames{
      "gelu_new", "gelu", "relu", "relu2", "silu", "gelu_new", "gelu", "relu", "clamped silu"};
  return entry_of(kNames, kind);
}

std::int64_t first_window(const TransformerConfig& c) {
  for (const LayerConfig& layer : c.layers)
    if (layer.window) return *layer.window;
  return 0;
}

/// Keys that all decoders have.
Json common_keys(const TransformerConfig& c, std::string_view type) {
  return {{"model_type", type},
          {"hidden_size", c.hidden},
          {"num_hidden_layers", c.layers.size()},
          {"num_attention_heads", c.attention.heads},
          {"vocab_size", c.vocabulary},
          {"max_position_embeddings", c.positions},
          {"tie_word_embeddings", c.tied_embeddings}};
}

Json grouped_keys(const TransformerConfig& c, std::string_view type) {
  Json keys = common_keys(c, type);
  keys["num_key_value_heads"] = c.attention.key_value_heads;
  keys["head_dim"] = c.attention.head_size;
  keys["intermediate_size"] = c.feed_forward.width;
  keys["hidden_act"] = activation_word(c.feed_forward.activation);
  keys["attention_dropout"] = c.attention.dropout;
  keys["rope_theta"] = c.attention.angles.base;
  keys["rms_norm_eps"] = c.norm.epsilon;
  return keys;
}

void add_window(const TransformerConfig& c, Json& keys) {
  const std::int64_t window = first_window(c);
  if (window > 0)
    keys["sliding_window"] = window;
  else
    keys["sliding_window"] = nullptr;
}

Json gpt2_keys(const TransformerConfig& c) {
  return {{"model_type", "gpt2"},
          {"n_embd", c.hidden},
          {"n_layer", c.layers.size()},
          {"n_head", c.attention.heads},
          {"n_inner", c.feed_forward.width},
          {"n_positions", c.positions},
          {"layer_norm_epsilon", c.norm.epsilon},
          {"vocab_size", c.vocabulary},
          {"activation_function", activation_word(c.feed_forward.activation)},
          {"tie_word_embeddings", c.tied_embeddings},
          {"embd_pdrop", c.embedding_dropout},
          {"resid_pdrop", c.residual_dropout},
          {"attn_pdrop", c.attention.dropout}};
}

Json gated_keys(const TransformerConfig& c, std::string_view type) {
  Json keys = grouped_keys(c, type);
  keys["hidden_act"] = "silu";
  if (type == "mistral") add_window(c, keys);
  if (type == "llama" || type == "qwen3") keys["attention_bias"] = c.attention.output_bias;
  if (type == "llama") keys["mlp_bias"] = c.feed_forward.bias;
  return keys;
}

Json nemotron_keys(const TransformerConfig& c) {
  Json keys = grouped_keys(c, "nemotron");
  keys.erase("rms_norm_eps");
  keys["norm_eps"] = c.norm.epsilon;
  const AttentionConfig& a = c.attention;
  keys["partial_rotary_factor"] =
      static_cast<double>(a.rotated_size.value_or(a.head_size)) / static_cast<double>(a.head_size);
  keys["attention_bias"] = a.output_bias;
  keys["mlp_bias"] = c.feed_forward.bias;
  return keys;
}

Json starcoder2_keys(const TransformerConfig& c) {
  Json keys = grouped_keys(c, "starcoder2");
  keys.erase("rms_norm_eps");
  keys["norm_epsilon"] = c.norm.epsilon;
  keys["use_bias"] = c.feed_forward.bias;
  keys["embedding_dropout"] = c.embedding_dropout;
  keys["residual_dropout"] = c.residual_dropout;
  add_window(c, keys);
  return keys;
}

Json mixtral_keys(const TransformerConfig& c) {
  Json keys = gated_keys(c, "mixtral");
  keys["intermediate_size"] = c.experts.width;
  keys["num_local_experts"] = c.experts.experts;
  keys["num_experts_per_tok"] = c.experts.experts_per_token;
  add_window(c, keys);
  return keys;
}

Json gpt_oss_keys(const TransformerConfig& c) {
  Json keys = mixtral_keys(c);
  keys["model_type"] = "gpt_oss";
  keys["attention_bias"] = c.attention.projection_bias;
  return keys;
}

Json llama4_keys(const TransformerConfig& c) {
  Json keys = gated_keys(c, "llama4_text");
  keys["intermediate_size_mlp"] = c.feed_forward.width;
  keys["intermediate_size"] = c.experts.width;
  keys["num_local_experts"] = c.experts.experts;
  keys["num_experts_per_tok"] = c.experts.experts_per_token;
  keys["attention_bias"] = c.attention.output_bias;
  keys["use_qk_norm"] = c.attention.query_key_norm != QueryKeyNorm::kNone;
  Json experts = Json::array(), rotates = Json::array();
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    if (c.layers[i].uses_experts) experts.push_back(i);
    rotates.push_back(c.layers[i].rotary ? 1 : 0);
  }
  keys["moe_layers"] = experts;
  keys["no_rope_layers"] = rotates;
  keys["attention_chunk_size"] = nullptr;  // Megatron-LM has neither
  keys["attn_temperature_tuning"] = false;
  return keys;
}

Json qwen_moe_keys(const TransformerConfig& c, std::string_view type) {
  Json keys = gated_keys(c, type);
  keys["num_experts"] = c.experts.experts;
  keys["num_experts_per_tok"] = c.experts.experts_per_token;
  keys["moe_intermediate_size"] = c.experts.width;
  keys["norm_topk_prob"] = c.experts.normalized;
  if (type == "qwen2_moe") {
    keys["shared_expert_intermediate_size"] = c.experts.shared_width;
    keys["qkv_bias"] = c.attention.projection_bias;
  }
  Json dense = Json::array();
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    if (!c.layers[i].uses_experts) dense.push_back(i);
  keys["mlp_only_layers"] = dense;
  return keys;
}

/// The first layers are dense, then every layer has experts.
Json deepseek_keys(const TransformerConfig& c, std::string_view type) {
  Json keys = common_keys(c, type);
  const LatentAttention latent = c.attention.latent.value_or(LatentAttention{});
  keys["intermediate_size"] = c.feed_forward.width;
  keys["attention_dropout"] = c.attention.dropout;
  keys["attention_bias"] = c.attention.output_bias;
  if (latent.query_rank)
    keys["q_lora_rank"] = *latent.query_rank;
  else
    keys["q_lora_rank"] = nullptr;
  keys["kv_lora_rank"] = latent.key_value_rank;
  keys["qk_rope_head_dim"] = latent.rotary_size;
  keys["qk_nope_head_dim"] = latent.positionless_size;
  keys["v_head_dim"] = c.attention.value_size;
  keys["rope_theta"] = c.attention.angles.base;
  keys["rms_norm_eps"] = c.norm.epsilon;
  keys["n_routed_experts"] = c.experts.experts;
  if (c.experts.experts == 0) return keys;
  std::size_t dense = 0;
  while (dense < c.layers.size() && !c.layers[dense].uses_experts) ++dense;
  keys["first_k_dense_replace"] = dense;
  keys["num_experts_per_tok"] = c.experts.experts_per_token;
  keys["moe_intermediate_size"] = c.experts.width;
  keys["n_shared_experts"] = c.experts.shared_width / std::max<std::int64_t>(c.experts.width, 1);
  const bool grouped = c.experts.groups > 1;
  keys["n_group"] = c.experts.groups;
  keys["topk_group"] = c.experts.chosen_groups;
  keys["routed_scaling_factor"] = c.experts.scale;
  keys["norm_topk_prob"] = c.experts.normalized;
  if (type == "deepseek_v3")
    keys["topk_method"] = c.experts.score_correction ? "noaux_tc" : "greedy";
  else
    keys["topk_method"] = grouped ? "group_limited_greedy" : "greedy";
  return keys;
}

std::vector<Json> candidates(const TransformerConfig& c) {
  if (c.attention.latent) return {deepseek_keys(c, "deepseek_v3"), deepseek_keys(c, "deepseek_v2")};
  if (c.experts.experts > 0)
    return {mixtral_keys(c), qwen_moe_keys(c, "qwen3_moe"), qwen_moe_keys(c, "qwen2_moe"),
            gpt_oss_keys(c), llama4_keys(c)};
  return {gated_keys(c, "llama"), gated_keys(c, "mistral"),
          gated_keys(c, "qwen2"), gated_keys(c, "qwen3"),
          gpt2_keys(c),           nemotron_keys(c),
          starcoder2_keys(c)};
}

// ---- differences --------------------------------------------------------------------------------

struct ComparedField {
  std::string_view name;
  std::string (*value)(const TransformerConfig&);
};

template <class Value>
std::string shown_value(const Value& value) {
  return fmt::format("{}", value);
}
std::string shown_value(bool value) { return value ? "yes" : "no"; }
std::string shown_value(NormKind kind) {
  return kind == NormKind::kRmsNorm ? "RMS norm" : "layer norm";
}
std::string shown_value(QueryKeyNorm norm) {
  constexpr std::array<std::string_view, 4> kNames{"none", "per head", "per head, without weights",
                                                   "over all heads"};
  return std::string(entry_of(kNames, norm));
}

const std::vector<ComparedField>& compared_fields() {
  static const std::vector<ComparedField> kFields{
      {"learned positions",
       [](const TransformerConfig& c) { return shown_value(c.learned_positions); }},
      {"norm", [](const TransformerConfig& c) { return shown_value(c.norm.kind); }},
      {"tied embeddings",
       [](const TransformerConfig& c) { return shown_value(c.tied_embeddings); }},
      {"embedding dropout",
       [](const TransformerConfig& c) { return shown_value(c.embedding_dropout); }},
      {"hidden dropout",
       [](const TransformerConfig& c) { return shown_value(c.residual_dropout); }},
      {"attention dropout",
       [](const TransformerConfig& c) { return shown_value(c.attention.dropout); }},
      {"key/value heads",
       [](const TransformerConfig& c) { return shown_value(c.attention.key_value_heads); }},
      {"head size",
       [](const TransformerConfig& c) {
         return shown_value(c.attention.latent ? 0 : c.attention.head_size);
       }},
      {"rotary embedding",
       [](const TransformerConfig& c) { return shown_value(c.attention.rotary); }},
      {"rotated size",
       [](const TransformerConfig& c) {
         return shown_value(
             c.attention.latent ? 0 : c.attention.rotated_size.value_or(c.attention.head_size));
       }},
      {"bias of queries, keys and values",
       [](const TransformerConfig& c) { return shown_value(c.attention.projection_bias); }},
      {"bias of the attention output",
       [](const TransformerConfig& c) { return shown_value(c.attention.output_bias); }},
      {"query/key norms",
       [](const TransformerConfig& c) { return shown_value(c.attention.query_key_norm); }},
      {"attention sinks",
       [](const TransformerConfig& c) { return shown_value(c.attention.sinks); }},
      {"feed-forward activation",
       [](const TransformerConfig& c) {
         return shown_value(activation_word(c.feed_forward.activation));
       }},
      {"feed-forward bias",
       [](const TransformerConfig& c) {
         return shown_value(c.experts.experts > 0 ? c.experts.bias : c.feed_forward.bias);
       }},
      {"shared expert width",
       [](const TransformerConfig& c) { return shown_value(c.experts.shared_width); }},
      {"gate of shared experts",
       [](const TransformerConfig& c) { return shown_value(c.experts.shared_gate); }},
      {"scaled inputs of the experts",
       [](const TransformerConfig& c) { return shown_value(c.experts.weighted_inputs); }},
      {"sigmoid scores of the router",
       [](const TransformerConfig& c) {
         return shown_value(c.experts.score == RouterScore::kSigmoid);
       }},
      {"expert bias in the router",
       [](const TransformerConfig& c) { return shown_value(c.experts.score_correction); }}};
  return kFields;
}

/// Positions, windows and experts of the layers, and the width of dense layers if there are any.
void compare_layers(const TransformerConfig& wanted, const TransformerConfig& got,
                    std::vector<std::string>& differences) {
  bool has_dense = false, positions = false, windows = false, experts = false;
  for (std::size_t i = 0; i < wanted.layers.size(); ++i) {
    has_dense = has_dense || !wanted.layers[i].uses_experts;
    positions = positions || wanted.layers[i].rotary != got.layers[i].rotary;
    windows = windows || wanted.layers[i].window != got.layers[i].window;
    experts = experts || wanted.layers[i].uses_experts != got.layers[i].uses_experts;
  }
  if (positions) differences.emplace_back("which layers have no positions");
  if (windows) differences.emplace_back("attention windows of the layers");
  if (experts) differences.emplace_back("which layers have experts");
  if (has_dense && wanted.feed_forward.width != got.feed_forward.width)
    differences.push_back(fmt::format("feed-forward width {} ({} is used)",
                                      wanted.feed_forward.width, got.feed_forward.width));
}

std::vector<std::string> differences_of(const TransformerConfig& wanted,
                                        const TransformerConfig& got) {
  std::vector<std::string> differences;
  for (const ComparedField& field : compared_fields())
    if (const std::string want = field.value(wanted), have = field.value(got); want != have)
      differences.push_back(fmt::format("{} {} ({} is used)", field.name, want, have));
  compare_layers(wanted, got, differences);
  return differences;
}

}  // namespace

ModelConfigText model_config_text(const TransformerConfig& config) {
  std::optional<ModelConfigText> best;
  std::optional<InputError> error;
  for (const Json& keys : candidates(config)) {
    ModelConfigText text{.json = keys.dump(2) + "\n", .differences = {}};
    try {
      const auto got =
          load_transformer({.name = "model", .where = "the imported model", .text = text.json});
      text.differences = differences_of(config, got->config);
    } catch (const InputError& e) {  // sizes that this family cannot have
      error = e;
      continue;
    }
    if (!best || text.differences.size() < best->differences.size()) best = std::move(text);
  }
  if (!best) throw InputError(*error);
  return std::move(*best);
}

}  // namespace meshwright
