// Gemma 1 to 3: factors of embeddings, norms whose weights start from zero, and from Gemma 2 on
// norms after the branches, windows in some layers and caps of scores and logits.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

/// What all three share.
TransformerConfig read_gemma_decoder(const Family& family, ConfigReader& reader,
                                     std::string_view activation_key) {
  TransformerConfig config = read_decoder(family, reader);
  read_norm(family, reader, "rms_norm_eps", NormKind::kRmsNorm, config);
  config.norm.offset = 1;
  config.embedding_scale = std::sqrt(static_cast<double>(config.hidden));
  read_grouped_heads(family, reader, config);
  AttentionConfig& a = config.attention;
  a.projection_bias = a.output_bias = reader.flag("attention_bias", false);
  config.feed_forward = {
      .width = reader.dimension("intermediate_size", family.feed_forward),
      .activation = read_gated_activation(reader, activation_key, "gelu_pytorch_tanh")};
  reader.refuse({"use_bidirectional_attention"});
  return config;
}

TransformerConfig read_gemma(const Family& family, ConfigReader& reader) {
  reader.ignore({"hidden_activation"});  // of early files; transformers 5 reads hidden_act
  TransformerConfig config = read_gemma_decoder(family, reader, "hidden_act");
  read_rotary(family, reader, config);
  return config;
}

/// Windows of the layers listed in layer_types, else of all but every `pattern`-th.
void read_gemma_windows(const Family& family, ConfigReader& reader, std::int64_t pattern,
                        TransformerConfig& config) {
  const std::int64_t window = reader.dimension("sliding_window", *family.window);
  const std::int64_t interval =
      reader.dimension(reader.name_in_use({"sliding_window_pattern", "_sliding_window_pattern"}),
                       pattern, kMostLayers);
  const std::vector<std::string> types = read_layer_types(reader, config.layers.size());
  if (!reader.is_clean()) return;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const bool slides = types.empty() ? (static_cast<std::int64_t>(i) + 1) % interval != 0
                                      : types[i] == "sliding_attention";
    if (slides) config.layers[i].window = window;
  }
}

TransformerConfig read_newer_gemma(const Family& family, ConfigReader& reader) {
  const bool second = family.model_type == "gemma2";
  reader.ignore({"hidden_act"});
  TransformerConfig config = read_gemma_decoder(family, reader, "hidden_activation");
  config.block = BlockKind::kBoth;
  AttentionConfig& a = config.attention;
  constexpr double kScalar = 256;
  a.scale = 1 / std::sqrt(reader.positive("query_pre_attn_scalar", kScalar));
  constexpr double kScoreCap = 50, kLogitCap = 30;
  if (reader.has("attn_logit_softcapping") || second)
    a.softcap = reader.off_or_positive("attn_logit_softcapping", second ? kScoreCap : 0);
  config.logit_softcap = reader.off_or_positive("final_logit_softcapping", second ? kLogitCap : 0);
  read_gemma_windows(family, reader, second ? 2 : 6, config);
  if (!reader.is_clean()) return config;
  if (second) {
    read_rotary(family, reader, config);
    return config;
  }
  a.query_key_norm = QueryKeyNorm::kPerHead;
  a.softcap = 0;  // Gemma 3 ignores the key
  a.angles = read_rotary_angles(reader, {a.head_size, config.positions, "full_attention"},
                                family.rotary_base);
  constexpr double kLocalBase = 10'000;
  const RotaryAngles local = read_local_angles(reader, {a.head_size, config.positions},
                                               reader.positive("rope_local_base_freq", kLocalBase));
  for (LayerConfig& layer : config.layers)
    if (layer.window) layer.angles = local;
  return config;
}

constexpr auto kGemmaFamilies = std::to_array<Family>({{.model_type = "gemma",
                                                        .architecture = "GemmaForCausalLM",
                                                        .read = read_gemma,
                                                        .vocabulary = 256000,
                                                        .positions = 8192,
                                                        .hidden = 3072,
                                                        .layers = 28,
                                                        .heads = 16,
                                                        .key_value_heads = 16,
                                                        .head_size = 256,
                                                        .feed_forward = 24576,
                                                        .padding = 0,
                                                        .tied = true},
                                                       {.model_type = "gemma2",
                                                        .architecture = "Gemma2ForCausalLM",
                                                        .read = read_newer_gemma,
                                                        .vocabulary = 256000,
                                                        .positions = 8192,
                                                        .hidden = 2304,
                                                        .layers = 26,
                                                        .heads = 8,
                                                        .key_value_heads = 4,
                                                        .head_size = 256,
                                                        .feed_forward = 9216,
                                                        .window = 4096,
                                                        .padding = 0,
                                                        .tied = true},
                                                       {.model_type = "gemma3_text",
                                                        .architecture = "Gemma3ForCausalLM",
                                                        .read = read_newer_gemma,
                                                        .vocabulary = 262208,
                                                        .positions = 131072,
                                                        .hidden = 2304,
                                                        .layers = 26,
                                                        .heads = 8,
                                                        .key_value_heads = 4,
                                                        .head_size = 256,
                                                        .feed_forward = 9216,
                                                        .window = 4096,
                                                        .padding = 0,
                                                        .rotary_base = 1e6,
                                                        .tied = true}});

}  // namespace

std::span<const Family> gemma_families() { return kGemmaFamilies; }

}  // namespace meshwright
