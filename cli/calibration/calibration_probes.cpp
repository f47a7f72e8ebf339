#include "cli/calibration/calibration_probes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/value_named.hpp"
#include "models/builders/transformer_builder.hpp"

namespace meshwright {
namespace {

constexpr int kMicrobatches = 2;
constexpr int kExperts = 4, kExpertsPerToken = 2;
/// The weights of models worth sharding do not fit in caches, while a few blocks of a small model
/// do and run up to four times faster. Weights and gradients of a probe together take this many
/// bytes: five times the cache share of a small virtual machine.
constexpr std::int64_t kWeightsAndGradients = std::int64_t{48} << 20;

std::int64_t parameters_of_block(const ProbeShape& shape) {
  const std::int64_t square = shape.hidden * shape.hidden;
  switch (shape.kind) {
    case ProbeKind::kGpt:
      return 12 * square;  // attention 4, feed-forward 2 x 4
    case ProbeKind::kLlama:
      return 9 * square;  // attention 3 with half as many keys, feed-forward 3 x 2
    case ProbeKind::kMixture:
      break;
  }
  return (4 + 6 * std::int64_t{kExperts}) * square;
}

int blocks_of(const ProbeShape& shape) {
  const std::int64_t one = 8 * parameters_of_block(shape);  // fp32 weights and gradients
  return static_cast<int>(std::max<std::int64_t>(1, (kWeightsAndGradients + one - 1) / one));
}

TransformerConfig config_of(const ProbeShape& shape) {
  TransformerConfig config;
  config.hidden = shape.hidden;
  config.vocabulary = shape.vocabulary;
  config.positions = shape.length;
  AttentionConfig& attention = config.attention;
  attention.head_size = shape.hidden < 512 ? 32 : 64;
  attention.value_size = attention.head_size;
  attention.heads = shape.hidden / attention.head_size;
  attention.key_value_heads = attention.heads;
  config.feed_forward.width = 4 * shape.hidden;
  config.layers.resize(static_cast<std::size_t>(blocks_of(shape)));
  if (shape.kind == ProbeKind::kGpt) {
    config.learned_positions = config.tied_embeddings = true;
    config.norm.kind = NormKind::kLayerNorm;
    attention.rotary = false;
    attention.projection_bias = attention.output_bias = config.feed_forward.bias = true;
    config.feed_forward.activation = ActivationKind::kGeluTanh;
    return config;
  }
  if (attention.heads / shape.cut % 2 == 0) attention.key_value_heads = attention.heads / 2;
  config.feed_forward.width = 2 * shape.hidden;
  if (shape.kind == ProbeKind::kMixture) {
    config.experts = {
        .experts = kExperts, .experts_per_token = kExpertsPerToken, .width = 2 * shape.hidden};
    for (LayerConfig& layer : config.layers) layer.uses_experts = true;
  }
  return config;
}

std::string_view name_of(ProbeKind kind) {
  constexpr std::array<std::string_view, 3> kNames{"gpt", "llama", "mixture"};
  return entry_of(kNames, kind);
}

/// Expert-parallel ranks have different tokens, tensor-parallel ranks the same.
int replicas_of(const ProbeShape& shape) {
  return shape.kind == ProbeKind::kMixture ? static_cast<int>(shape.cut) : 1;
}

/// Approximate number of multiply-adds of a step on all ranks.
double size_of(const ProbeShape& s) {
  const double tokens =
      static_cast<double>(s.length) * s.sequences * kMicrobatches * replicas_of(s);
  const std::int64_t parameters = blocks_of(s) * parameters_of_block(s) + s.vocabulary * s.hidden;
  return tokens * static_cast<double>(parameters);
}

/// Unsharded and sharded layers of every width, each with half of the token counts. Fewer shapes in
/// bf16, which is slow on processors without instructions for it.
bool is_wanted(const ProbeShape& s) {
  const bool is_even = s.length == 64 || s.length == 256;
  if (s.kind == ProbeKind::kMixture && s.hidden > 512) return false;  // 100 million parameters
  if (s.dtype == Dtype::kBf16)
    return (s.hidden == 128 || s.hidden == 512) && s.cut < 4 && is_even == (s.cut == 1);
  return s.cut == 1 || is_even == (s.cut == 4);
}

}  // namespace

std::string name_of(const ProbeShape& shape) {
  return fmt::format("{} hidden {} / {}, {} x {} tokens, {}", name_of(shape.kind), shape.hidden,
                     shape.cut, shape.sequences, shape.length, name_of(shape.dtype));
}

KernelProbe probe_of(const ProbeShape& shape) {
  KernelProbe probe;
  probe.name = name_of(shape);
  // The load of experts differs.
  probe.has_equal_ranks = shape.cut > 1 && shape.kind != ProbeKind::kMixture;
  probe.model = build_transformer(config_of(shape), "probe", "llama", "probe");
  Strategy& s = probe.strategy;
  s.micro_batch = shape.sequences;
  s.global_batch = std::int64_t{kMicrobatches} * shape.sequences * replicas_of(shape);
  if (shape.kind == ProbeKind::kMixture)
    s.degrees.data = s.degrees.expert = static_cast<int>(shape.cut);
  else
    s.degrees.tensor = static_cast<int>(shape.cut);
  s.sequence_length = shape.length;
  s.dtype = shape.dtype;
  return probe;
}

std::vector<ProbeShape> calibration_probes() {
  std::vector<ProbeShape> shapes;
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16})
    for (const ProbeKind kind : {ProbeKind::kGpt, ProbeKind::kLlama, ProbeKind::kMixture})
      for (const std::int64_t hidden : {128, 256, 512, 1024})
        for (const std::int64_t cut : {1, 2, 4})
          for (const std::int64_t length : {32, 64, 128, 256}) {
            // Wider models usually have larger vocabularies.
            const std::int64_t words = length == 128 ? 2 : hidden < 1024 ? 4 : 16;
            const ProbeShape shape{kind, hidden, cut, length, words * hidden, 1, dtype};
            if (is_wanted(shape)) shapes.push_back(shape);
          }
  // Smallest first, and fp32 before bf16: most CPU jobs use fp32.
  std::stable_sort(shapes.begin(), shapes.end(), [](const ProbeShape& a, const ProbeShape& b) {
    return size_of(a) * (a.dtype == Dtype::kFp32 ? 1 : 4) <
           size_of(b) * (b.dtype == Dtype::kFp32 ? 1 : 4);
  });
  return shapes;
}

/// Few and many tokens, since plans divide batches. Every width and model with whole matrices and
/// 1,024 tokens comes first, then what is ever farther from that: a short calibration spans all
/// widths.
std::vector<ProbeShape> gpu_probes() {
  struct Ranked {
    int distance;
    ProbeShape shape;
  };
  struct Tokens {
    int distance;
    std::int64_t length;
    int sequences;
  };
  constexpr std::array<Tokens, 4> kTokens{{{0, 1024, 1}, {1, 256, 1}, {2, 1024, 8}, {3, 4096, 1}}};
  std::vector<Ranked> ranked;
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp32})
    for (const std::int64_t hidden : {512, 2048, 1024})
      for (const ProbeKind kind : {ProbeKind::kGpt, ProbeKind::kLlama, ProbeKind::kMixture})
        for (const std::int64_t cut : {1, 2, 4})
          for (const Tokens& tokens : kTokens) {
            const bool is_wide = hidden == 2048, is_fp32 = dtype == Dtype::kFp32;
            if (is_fp32 && (cut > 1 || is_wide || tokens.length > 1024)) continue;
            if (kind == ProbeKind::kMixture && (is_wide || cut == 4)) continue;
            constexpr int kAfterBf16 = 100;
            const int distance =
                tokens.distance + static_cast<int>(cut / 2) + (is_fp32 ? kAfterBf16 : 0);
            ranked.push_back(
                {distance,
                 {kind, hidden, cut, tokens.length, 16 * hidden, tokens.sequences, dtype}});
          }
  std::ranges::stable_sort(ranked, {}, &Ranked::distance);
  std::vector<ProbeShape> shapes(ranked.size());
  std::ranges::transform(ranked, shapes.begin(), &Ranked::shape);
  return shapes;
}

}  // namespace meshwright
