/// Dialects of HuggingFace config.json: one reader per group of model types that share their keys,
/// and the parts that readers share. Sizes are compared only if all of them are valid: an error
/// that follows from another is noise.
///
/// A missing key takes the default of the HuggingFace configuration class of that model_type
/// (huggingface/transformers, src/transformers/models/*/configuration_*.py). Where transformers 4
/// and 5 write different names, or the class has an `attribute_map`, every name is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/builders/transformer_config.hpp"
#include "models/families/config_reader.hpp"

namespace meshwright {

/// What a missing key means. Absent optionals: the class computes it from other keys.
struct Family {
  std::string_view model_type, architecture;
  TransformerConfig (*read)(const Family& family, ConfigReader& reader) = nullptr;
  std::int64_t vocabulary = 0, positions = 0, hidden = 0, layers = 0, heads = 0;
  std::optional<std::int64_t> key_value_heads = {}, head_size = {};
  std::int64_t feed_forward = 0;
  std::optional<std::int64_t> window = {};
  std::int64_t experts = 0, experts_per_token = 0, expert_width = 0;
  std::optional<std::int64_t> padding = {};  ///< token
  double norm_epsilon = 1e-6, rotary_base = 10'000, initial_deviation = 0.02;
  bool tied = false;
};

/// Rows and their readers. A new model type is a row, and a reader if it has keys of its own.
std::span<const Family> dense_families();
std::span<const Family> gemma_families();
std::span<const Family> parallel_families();  ///< attention in parallel with the feed-forward layer
std::span<const Family> expert_families();

inline bool is_qwen(const Family& family) { return family.model_type.starts_with("qwen"); }
inline bool is_qwen2(const Family& family) { return family.model_type.starts_with("qwen2"); }
inline bool is_grok(const Family& family) { return family.model_type == "grok-1"; }
inline bool is_gpt_oss(const Family& family) { return family.model_type == "gpt_oss"; }

/// What all decoders with these keys share; the activation depends on the dialect.
TransformerConfig read_decoder(const Family& family, ConfigReader& reader);
/// The same, with a gated feed-forward layer.
TransformerConfig read_gated_decoder(const Family& family, ConfigReader& reader);
/// Of a feed-forward layer without gate, and of one with a gate.
ActivationKind read_plain_activation(ConfigReader& reader, std::string_view key,
                                     const std::string& absent);
ActivationKind read_gated_activation(ConfigReader& reader, std::string_view key,
                                     const std::string& absent);
/// The epsilon of norms under `key`.
void read_norm(const Family& family, ConfigReader& reader, std::string_view key, NormKind kind,
               TransformerConfig& config);
/// "initializer_range", for all matrices.
void read_initial_deviation(const Family& family, ConfigReader& reader, std::string_view key,
                            TransformerConfig& config);
/// "pad_token_id": the embedding of this token is not trained.
void read_padding(const Family& family, ConfigReader& reader, TransformerConfig& config);
/// H / A, where A must divide H.
std::int64_t divided_head_size(ConfigReader& reader, std::string_view heads_key, std::int64_t heads,
                               std::int64_t hidden);
void read_grouped_heads(const Family& family, ConfigReader& reader, TransformerConfig& config);
std::vector<LayerConfig> read_layers(ConfigReader& reader, std::string_view key,
                                     std::int64_t absent);
/// What a rotary position embedding is read for.
struct RotarySizes {
  std::int64_t rotated = 0, positions = 0;
  std::string_view layer_type = {};  ///< if layers may differ: the type of these
};
/// The positions of a decoder: base, context extension, and the rotated part of every head, which
/// is `partial` of it by default. Families that rotate whole heads have no `partial`.
void read_rotary(const Family& family, ConfigReader& reader, TransformerConfig& config,
                 std::optional<double> partial = {});
/// `base`: that of a configuration without `base_key`.
RotaryAngles read_rotary_angles(ConfigReader& reader, const RotarySizes& sizes, double base,
                                std::string_view base_key = "rope_theta");
/// Of the layers with a window, if they differ; `base`: that without rope_parameters.
RotaryAngles read_local_angles(ConfigReader& reader, const RotarySizes& sizes, double base);
/// int(D * factor) elements, where the factor stands under `key`.
std::int64_t read_rotated_size(ConfigReader& reader, std::string_view key, std::int64_t head_size,
                               double absent);
/// DeepSeek multiplies attention scores by the square of YaRN's mscale_all_dim magnitude.
double yarn_score_factor(ConfigReader& reader);

/// Layers without positions: a list of 0 and 1, or every N-th layer (SmolLM3, Llama 4).
void read_layers_without_positions(ConfigReader& reader, TransformerConfig& config);

/// Entries of `layer_types`, full_attention or `limited`: one per layer, or none.
std::vector<std::string> read_layer_types(ConfigReader& reader, std::size_t layers,
                                          std::string_view limited = "sliding_attention");

/// Layers with sliding-window attention: those listed in `layer_types`, else by the rule of the
/// model type (Mistral, Mixtral: all; Qwen: from max_window_layers on, if use_sliding_window;
/// gpt-oss: every other layer, starting with the first).
void read_windows(const Family& family, ConfigReader& reader, std::vector<LayerConfig>& layers);

}  // namespace meshwright
