#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

struct NamedActivation {
  std::string_view name;
  ActivationKind plain;
  std::optional<ActivationKind> gated = {};
};
/// Names of ACT2FN in transformers that are supported.
constexpr NamedActivation kActivations[] = {
    {"gelu", ActivationKind::kGeluErf, ActivationKind::kGegluErf},
    {"gelu_new", ActivationKind::kGeluTanh, ActivationKind::kGegluTanh},
    {"gelu_fast", ActivationKind::kGeluTanh, ActivationKind::kGegluTanh},
    {"gelu_pytorch_tanh", ActivationKind::kGeluTanh, ActivationKind::kGegluTanh},
    {"relu", ActivationKind::kRelu, ActivationKind::kReglu},
    {"relu2", ActivationKind::kSquaredRelu},
    {"silu", ActivationKind::kSwiGlu, ActivationKind::kSwiGlu},
    {"swish", ActivationKind::kSwiGlu, ActivationKind::kSwiGlu}};

const NamedActivation& read_activation(ConfigReader& reader, std::string_view key,
                                       const std::string& absent, bool gated) {
  std::vector<std::string> names;
  for (const NamedActivation& entry : kActivations)
    if (gated ? entry.gated.has_value() : !is_gated(entry.plain)) names.emplace_back(entry.name);
  return *std::ranges::find(kActivations, reader.choice(key, absent, names),
                            &NamedActivation::name);
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

}  // namespace

ActivationKind read_plain_activation(ConfigReader& reader, std::string_view key,
                                     const std::string& absent) {
  return read_activation(reader, key, absent, false).plain;
}

ActivationKind read_gated_activation(ConfigReader& reader, std::string_view key,
                                     const std::string& absent) {
  return *read_activation(reader, key, absent, true).gated;
}

void read_norm(const Family& family, ConfigReader& reader, std::string_view key, NormKind kind,
               TransformerConfig& config) {
  config.norm.kind = kind;
  config.norm.epsilon = reader.not_negative(key, family.norm_epsilon);
}

void read_initial_deviation(const Family& family, ConfigReader& reader, std::string_view key,
                            TransformerConfig& config) {
  config.initial_deviation = reader.not_negative(key, family.initial_deviation);
  config.initial_residual_deviation = config.initial_deviation;
}

void read_rotary(const Family& family, ConfigReader& reader, TransformerConfig& config,
                 std::optional<double> partial) {
  AttentionConfig& a = config.attention;
  const std::string_view key = reader.name_in_use(
      {"partial_rotary_factor", "rotary_pct", "rope_percent", "rope_percentage"});
  const std::int64_t rotated = read_rotated_size(reader, key, a.head_size, partial.value_or(1));
  if (reader.is_clean() && !partial && rotated != a.head_size)
    reader.complain(
        key, fmt::format("'{}' is not supported for model_type '{}'", key, family.model_type),
        "remove it: this model rotates whole heads");
  if (rotated != a.head_size) a.rotated_size = rotated;
  const std::string_view base = reader.name_in_use({"rope_theta", "rotary_emb_base"});
  a.angles = read_rotary_angles(reader, {rotated, config.positions}, family.rotary_base, base);
}

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

std::vector<std::string> read_layer_types(ConfigReader& reader, std::size_t layers,
                                          std::string_view limited) {
  std::vector<std::string> types = reader.strings("layer_types");
  if (!types.empty() && types.size() != layers)
    reader.complain("layer_types", fmt::format("expected {} entries, got {}", layers, types.size()),
                    "give one entry per layer");
  for (const std::string& type : types)
    if (type != "full_attention" && type != limited)
      reader.complain("layer_types", fmt::format("'{}' is not supported", type),
                      fmt::format("use full_attention or {}", limited));
  return types;
}

void read_windows(const Family& family, ConfigReader& reader, std::vector<LayerConfig>& layers) {
  // Qwen2-MoE writes 0 for none.
  const std::int64_t window =
      reader.count("sliding_window", family.window.value_or(0), kLargestDimension);
  const bool may_slide = !is_qwen(family) || reader.flag("use_sliding_window", false);
  constexpr std::int64_t kQwenWindowLayers = 28;
  std::int64_t first_sliding =
      is_qwen(family) ? reader.count("max_window_layers", kQwenWindowLayers, kMostLayers) : 0;
  if (family.model_type == "qwen3_moe") first_sliding = 0;  // it does not read the key
  const std::vector<std::string> types = read_layer_types(reader, layers.size());
  if (!reader.is_clean() || window == 0 || !may_slide) return;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    bool slides = static_cast<std::int64_t>(i) >= first_sliding;
    if (is_gpt_oss(family)) slides = i % 2 == 0;
    if (!types.empty()) slides = types[i] == "sliding_attention";
    if (slides) layers[i].window = window;
  }
}

void read_layers_without_positions(ConfigReader& reader, TransformerConfig& config) {
  constexpr std::int64_t kInterval = 4;
  const std::vector<std::int64_t> rotates = reader.counts("no_rope_layers", 1);
  const std::int64_t interval = reader.dimension("no_rope_layer_interval", kInterval, kMostLayers);
  if (!rotates.empty() && rotates.size() != config.layers.size())
    reader.complain(
        "no_rope_layers",
        fmt::format("expected {} entries, got {}", config.layers.size(), rotates.size()),
        "give one entry per layer: 0 for a layer without positions");
  if (!reader.is_clean()) return;
  for (std::size_t i = 0; i < config.layers.size(); ++i)
    config.layers[i].rotary =
        rotates.empty() ? (static_cast<std::int64_t>(i) + 1) % interval != 0 : rotates[i] == 1;
}

void read_padding(const Family& family, ConfigReader& reader, TransformerConfig& config) {
  config.padding = reader.token("pad_token_id", family.padding, config.vocabulary);
}

TransformerConfig read_decoder(const Family& family, ConfigReader& reader) {
  TransformerConfig config;
  config.hidden = reader.dimension("hidden_size", family.hidden);
  config.vocabulary = reader.dimension("vocab_size", family.vocabulary);
  config.positions = reader.dimension("max_position_embeddings", family.positions);
  config.tied_embeddings = reader.flag("tie_word_embeddings", family.tied);
  config.layers = read_layers(reader, "num_hidden_layers", family.layers);
  config.attention.dropout = reader.dropout("attention_dropout", 0);
  read_initial_deviation(family, reader, "initializer_range", config);
  // The embeddings of the others have no padding_idx.
  if (family.model_type != "falcon" && family.model_type != "gpt_neox" && !is_grok(family))
    read_padding(family, reader, config);
  return config;
}

TransformerConfig read_gated_decoder(const Family& family, ConfigReader& reader) {
  TransformerConfig config = read_decoder(family, reader);
  config.feed_forward.activation = config.experts.activation =
      read_gated_activation(reader, "hidden_act", "silu");
  read_norm(family, reader, "rms_norm_eps", NormKind::kRmsNorm, config);
  return config;
}

}  // namespace meshwright
