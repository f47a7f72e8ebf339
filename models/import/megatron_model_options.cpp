#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families/config_reader.hpp"
#include "models/import/import_lines.hpp"
#include "models/import/megatron_options.hpp"

namespace meshwright {
namespace {

/// The vocabulary of the embedding: padded to a multiple of 128 x tensor ranks unless given.
std::int64_t read_vocabulary(OptionReader& options, ImportedJob& job) {
  const std::optional<std::int64_t> padded = options.optional_count("padded-vocab-size");
  std::optional<std::int64_t> size = options.optional_count("vocab-size");
  const std::string tokenizer = options.text("tokenizer-type");
  constexpr std::int64_t kGpt2Tokens = 50257, kLlama2Tokens = 32000;
  if (!size && tokenizer == "GPT2BPETokenizer") size = kGpt2Tokens;
  if (!size && tokenizer == "Llama2Tokenizer") size = kLlama2Tokens;
  const std::int64_t multiple =
      options.count("make-vocab-size-divisible-by", 128) * job.strategy.degrees.tensor;
  if (padded) return *padded;
  if (!size) {
    options.complain("vocab-size", "missing option: the tokenizer decides the vocabulary size",
                     "add --vocab-size N to the file, or give the model with --model");
    return 1;
  }
  const std::int64_t rounded = (*size + multiple - 1) / multiple * multiple;
  if (rounded != *size)
    job.notes.push_back(fmt::format("vocabulary of {} padded to {}", *size, rounded));
  return rounded;
}

void read_attention_options(OptionReader& options, TransformerConfig& c) {
  AttentionConfig& a = c.attention;
  a.heads = options.required_count("num-attention-heads");
  const std::int64_t groups = options.count("num-query-groups", 1);
  a.key_value_heads = options.has("group-query-attention") ? groups : a.heads;
  const std::int64_t natural = a.heads > 0 ? std::max<std::int64_t>(c.hidden / a.heads, 1) : 1;
  a.head_size = a.value_size = options.count("kv-channels", natural);
  a.dropout = options.number("attention-dropout", 0.1);
  if (options.has("qk-layernorm")) a.query_key_norm = QueryKeyNorm::kPerHead;
  if (options.has("qk-l2-norm")) a.query_key_norm = QueryKeyNorm::kUnweightedPerHead;
  a.sinks = options.text("softmax-type") == "learnable";
  const bool has_latent = options.has("multi-latent-attention");
  const std::optional<std::int64_t> query_rank = options.optional_count("q-lora-rank");
  const LatentAttention latent{.query_rank = query_rank,
                               .key_value_rank = options.count("kv-lora-rank", 32),
                               .rotary_size = options.count("qk-pos-emb-head-dim", 64),
                               .positionless_size = options.count("qk-head-dim", 128)};
  const std::int64_t value_size = options.count("v-head-dim", 128);
  if (!has_latent) return;
  a.latent = latent;
  a.value_size = value_size;
  a.key_value_heads = a.heads;
}

void read_positions(OptionReader& options, TransformerConfig& c) {
  const std::vector<std::string> kinds{"learned_absolute", "rope", "yarn", "mrope",
                                       "relative",         "none"};
  std::size_t kind = options.choice("position-embedding-type", kinds, 0);
  if (options.has("use-rotary-position-embeddings")) kind = 1;
  c.learned_positions = kind == 0;
  c.attention.rotary = kind >= 1 && kind <= 3;
  const double share = options.number("rotary-percent", 1);
  if (c.attention.rotary && share < 1)
    c.attention.rotated_size = std::llround(share * static_cast<double>(c.attention.head_size));
  for (const char* name : {"rotary-base", "use-rope-scaling", "rope-scaling-factor",
                           "rotary-scaling-factor", "norm-epsilon"})
    options.has(name);  // neither size nor cost
}

/// 1 for a layer without rotation; a number N: every N-th layer, the last.
void read_layers_without_rotation(OptionReader& options, TransformerConfig& c) {
  const std::string text = options.text("no-rope-freq");
  if (text.empty()) return;
  const auto layers = static_cast<std::int64_t>(c.layers.size());
  std::vector<bool> positionless;
  if (const auto every = whole_number(text); every && *every > 0)
    for (std::int64_t i = 0; i < layers; ++i) positionless.push_back((i + 1) % *every == 0);
  else
    positionless = layers_of_pattern(text, layers);
  if (positionless.size() != c.layers.size())
    return options.complain("no-rope-freq", fmt::format("invalid value '{}'", text),
                            fmt::format("give a number, or a list of {} layers", layers));
  for (std::size_t i = 0; i < positionless.size(); ++i)
    c.layers[i].rotary = c.layers[i].query_key_norm = !positionless[i];
}

/// A window of W - 1 keys to the left: W keys with the query's own.
void read_window(OptionReader& options, TransformerConfig& c) {
  const std::string text = options.text("window-size");
  const std::string pattern = options.text("window-attn-skip-freq");
  if (text.empty()) return;
  std::string digits = text.substr(0, text.find(','));
  if (digits.starts_with("(")) digits.erase(0, 1);
  const std::optional<std::int64_t> left = whole_number(digits);
  if (!left || *left < 0 || *left > (std::int64_t{1} << 31)) {
    options.complain("window-size", fmt::format("invalid value '{}'", text),
                     "use LEFT,0, such as 4095,0");
    return;
  }
  std::vector<bool> slides(c.layers.size(), true);
  if (!pattern.empty()) {
    // A number N: one layer of N without a window, the last.
    if (const auto every = whole_number(pattern); every && *every > 0)
      for (std::size_t i = 0; i < slides.size(); ++i)
        slides[i] = (static_cast<std::int64_t>(i) + 1) % *every != 0;
    else
      slides = layers_of_pattern(pattern, static_cast<std::int64_t>(slides.size()));
  }
  if (slides.size() != c.layers.size())
    options.complain("window-attn-skip-freq", fmt::format("invalid value '{}'", pattern),
                     "give one entry per layer");
  else
    for (std::size_t i = 0; i < slides.size(); ++i)
      if (slides[i]) c.layers[i].window = *left + 1;
}

void read_feed_forward(OptionReader& options, TransformerConfig& c) {
  FeedForwardConfig& f = c.feed_forward;
  f.activation =
      options.has("squared-relu") ? ActivationKind::kSquaredRelu : ActivationKind::kGeluTanh;
  if (options.has("swiglu")) f.activation = ActivationKind::kSwiGlu;
  // arguments.py: 4 H, or 8/3 H rounded down to a multiple of 64 for gated layers.
  constexpr std::int64_t kMultiple = 64;
  const std::int64_t natural = f.activation == ActivationKind::kSwiGlu
                                   ? 8 * c.hidden / 3 / kMultiple * kMultiple
                                   : 4 * c.hidden;
  f.width = options.count("ffn-hidden-size", std::max<std::int64_t>(natural, 1));
  f.bias = !options.has("disable-bias-linear");
  c.attention.output_bias = f.bias;
  c.attention.projection_bias = options.has("add-qkv-bias") || f.bias;
}

void read_experts(OptionReader& options, TransformerConfig& c) {
  constexpr std::int64_t kMost = 1 << 16;
  ExpertsConfig& e = c.experts;
  e.experts = static_cast<int>(options.count("num-experts", 0, 0, kMost));
  e.experts_per_token = static_cast<int>(options.count("moe-router-topk", 2, 1, kMost));
  e.width = options.count("moe-ffn-hidden-size", c.feed_forward.width);
  e.shared_width = options.count("moe-shared-expert-intermediate-size", 0, 0);
  e.shared_gate = options.has("moe-shared-expert-gate");
  e.score_correction = options.has("moe-router-enable-expert-bias");
  e.weighted_inputs = options.has("moe-apply-probs-on-input");
  const std::string frequency = options.text("moe-layer-freq", "1");
  e.score = options.text("moe-router-score-function", "softmax") == "sigmoid"
                ? RouterScore::kSigmoid
                : RouterScore::kSoftmax;
  for (const char* name :
       {"moe-grouped-gemm", "moe-aux-loss-coeff", "moe-router-load-balancing-type"})
    options.has(name);  // neither size nor cost
  if (e.experts == 0) return;
  e.bias = c.feed_forward.bias;
  const std::vector<bool> uses =
      layers_of_pattern(frequency, static_cast<std::int64_t>(c.layers.size()));
  if (uses.size() != c.layers.size())
    options.complain("moe-layer-freq", fmt::format("invalid value '{}'", frequency),
                     fmt::format("give a number, or a list of {} layers", c.layers.size()));
  else
    for (std::size_t i = 0; i < uses.size(); ++i) c.layers[i].uses_experts = uses[i];
}

}  // namespace

TransformerConfig read_megatron_model(OptionReader& options, ImportedJob& job) {
  TransformerConfig c;
  std::int64_t layers = options.required_count("num-layers");
  if (layers > kMostLayers) {
    options.complain("num-layers",
                     fmt::format("{} layers: expected at most {}", layers, kMostLayers), "");
    layers = 1;
  }
  c.layers.resize(static_cast<std::size_t>(layers));
  c.hidden = options.required_count("hidden-size");
  c.positions = options.count("max-position-embeddings", job.strategy.sequence_length);
  c.tied_embeddings = !options.has("untie-embeddings-and-output-weights");
  c.norm.kind = options.choice("normalization", {"LayerNorm", "RMSNorm"}, 0) == 1
                    ? NormKind::kRmsNorm
                    : NormKind::kLayerNorm;
  c.residual_dropout = c.embedding_dropout = options.number("hidden-dropout", 0.1);
  read_attention_options(options, c);
  read_positions(options, c);
  read_feed_forward(options, c);
  read_window(options, c);
  read_layers_without_rotation(options, c);
  read_experts(options, c);
  c.vocabulary = read_vocabulary(options, job);
  return c;
}

}  // namespace meshwright
