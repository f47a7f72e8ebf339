#include "cli/calibration_probes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/transformer_builder.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kHeadSize = 32;
constexpr int kBlocks = 2, kMicrobatches = 2;
constexpr int kExperts = 4, kExpertsPerToken = 2;

TransformerConfig config_of(const ProbeShape& shape) {
  TransformerConfig config;
  config.hidden = shape.hidden;
  config.vocabulary = shape.vocabulary;
  config.positions = shape.length;
  AttentionConfig& attention = config.attention;
  attention.head_size = std::min(kHeadSize, shape.hidden / shape.cut);
  attention.value_size = attention.head_size;
  attention.heads = shape.hidden / attention.head_size;
  attention.key_value_heads = attention.heads;
  config.feed_forward.width = 4 * shape.hidden;
  config.layers.resize(kBlocks);
  if (shape.kind == ProbeKind::kGpt) {
    config.learned_positions = config.tied_embeddings = true;
    config.norm = NormKind::kLayerNorm;
    attention.rotary = false;
    attention.projection_bias = attention.output_bias = config.feed_forward.bias = true;
    config.feed_forward.activation = ActivationKind::kGelu;
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
  switch (kind) {
    case ProbeKind::kGpt:
      return "gpt";
    case ProbeKind::kLlama:
      return "llama";
    case ProbeKind::kMixture:
      break;
  }
  return "mixture";
}

/// Ranks that hold experts see tokens of their own; tensor ranks see the same ones.
int replicas_of(const ProbeShape& shape) {
  return shape.kind == ProbeKind::kMixture ? static_cast<int>(shape.cut) : 1;
}

/// Multiply-adds of a step on all ranks, by and large.
double size_of(const ProbeShape& s) {
  const double tokens =
      static_cast<double>(s.length) * s.sequences * kMicrobatches * replicas_of(s);
  const double h = static_cast<double>(s.hidden);
  return tokens * h * (kBlocks * 12 * h + static_cast<double>(s.vocabulary));
}

}  // namespace

std::string name_of(const ProbeShape& shape) {
  return fmt::format("{} hidden {} / {}, {} x {} tokens, {}", name_of(shape.kind), shape.hidden,
                     shape.cut, shape.sequences, shape.length, name_of(shape.dtype));
}

KernelProbe probe_of(const ProbeShape& shape) {
  KernelProbe probe;
  probe.name = name_of(shape);
  probe.model = build_transformer(config_of(shape), "probe", "llama", "probe");
  Strategy& s = probe.strategy;
  s.micro_batch = shape.sequences;
  s.global_batch = kMicrobatches * shape.sequences * replicas_of(shape);
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
      for (const std::int64_t hidden : {64, 128, 256, 512})
        for (const std::int64_t cut : {1, 2, 4})
          for (const std::int64_t length : {32, 64, 128, 256}) {
            // Most jobs have larger tables where layers are wider.
            ProbeShape shape{kind, hidden, cut, length, 4 * hidden, 1, dtype};
            if (length == 128) shape.vocabulary = 256 * cut;
            shapes.push_back(shape);
          }
  // Small ones cost nothing and show what a call costs; fp32 is what most CPU jobs use.
  std::stable_sort(shapes.begin(), shapes.end(), [](const ProbeShape& a, const ProbeShape& b) {
    return size_of(a) * (a.dtype == Dtype::kFp32 ? 1 : 4) <
           size_of(b) * (b.dtype == Dtype::kFp32 ? 1 : 4);
  });
  return shapes;
}

}  // namespace meshwright
