// Small models built by hand, operator by operator, as described in papers.
#pragma once

#include <string>

#include "core/cluster/cluster.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright::testing_models {

struct GptShape {
  int blocks = 4;
  std::int64_t hidden = 64, heads = 4, vocabulary = 512, positions = 128;
  bool tied = false;
};

namespace detail {

struct BlockWriter {
  ModelGraphBuilder& builder;
  std::int64_t hidden;

  TensorId activation(std::int64_t width, ActivationCut cut = ActivationCut::kTokens) {
    return builder.add_activation("a", {.width = width, .cut = cut});
  }
  TensorId mask(std::int64_t width) {
    return builder.add_activation("mask", {.width = width, .element = ElementWidth::kMask});
  }
  TensorId parameter(std::vector<std::int64_t> shape, ParameterCut cut) {
    return builder.add_parameter("w", {std::move(shape), cut});
  }
  TensorId norm(TensorId x) {
    const TensorId y = activation(hidden);
    builder.add({"norm",
                 Norm{NormKind::kLayerNorm, hidden},
                 {x},
                 {y},
                 {parameter({hidden}, ParameterCut::kReplicated),
                  parameter({hidden}, ParameterCut::kReplicated)},
                 {x}});
    return y;
  }
  TensorId linear(TensorId x, std::int64_t in, std::int64_t out, LinearCut cut) {
    const bool column = cut == LinearCut::kColumn;
    const TensorId y = activation(out, column ? ActivationCut::kFeatures : ActivationCut::kTokens);
    builder.add({"linear",
                 Linear{in, out, true, cut},
                 {x},
                 {y},
                 {parameter({in, out}, ParameterCut::kTensor),
                  parameter({out}, column ? ParameterCut::kTensor : ParameterCut::kReplicated)},
                 {x}});
    return y;
  }
  TensorId attention(TensorId q, TensorId k, TensorId v, std::int64_t heads) {
    ActivationTensor scores{.width = heads, .per_key = true, .cut = ActivationCut::kFeatures};
    const TensorId probabilities = builder.add_activation("p", scores);
    const TensorId dropped = builder.add_activation("d", scores);
    scores.element = ElementWidth::kMask;
    const TensorId dropout = builder.add_activation("m", scores);
    const TensorId y = activation(hidden, ActivationCut::kFeatures);
    builder.add({"attention",
                 Attention{.heads = heads,
                           .key_value_heads = heads,
                           .key_size = hidden / heads,
                           .value_size = hidden / heads,
                           .window = {},
                           .dropout = 0.1},
                 {q, k, v},
                 {y},
                 {},
                 {q, k, v, probabilities, dropped, dropout}});
    return y;
  }
  TensorId residual(TensorId a, TensorId b) {
    const TensorId y = activation(hidden);
    builder.add({"residual", ResidualAdd{hidden, 0.1}, {a, b}, {y}, {}, {mask(hidden)}});
    return y;
  }
  TensorId gelu(TensorId x, std::int64_t width) {
    const TensorId y = activation(width, ActivationCut::kFeatures);
    builder.add({"gelu", Activation{ActivationKind::kGeluTanh, width, false}, {x}, {y}, {}, {x}});
    return y;
  }
};

}  // namespace detail

/// GPT as in Megatron-LM: learned positions, dropout, GELU, biases.
inline ModelGraph gpt(const GptShape& shape) {
  const std::int64_t h = shape.hidden;
  ModelGraphBuilder builder("tiny-gpt", "gpt2");
  detail::BlockWriter w{builder, h};
  builder.begin_layer(LayerKind::kEmbedding);
  const TensorId table = w.parameter({shape.vocabulary, h}, ParameterCut::kTensor);
  const TensorId words = w.activation(h), positions = w.activation(h);
  builder.add({"words", EmbeddingLookup{shape.vocabulary, h}, {}, {words}, {table}, {}});
  builder.add({"positions",
               EmbeddingLookup{shape.positions, h},
               {},
               {positions},
               {w.parameter({shape.positions, h}, ParameterCut::kReplicated)},
               {}});
  TensorId x = w.residual(words, positions);
  builder.end_layer(h);
  for (int i = 0; i < shape.blocks; ++i) {
    builder.begin_layer(LayerKind::kBlock);
    const TensorId normed = w.norm(x);
    const TensorId q = w.linear(normed, h, h, LinearCut::kColumn);
    const TensorId k = w.linear(normed, h, h, LinearCut::kColumn);
    const TensorId v = w.linear(normed, h, h, LinearCut::kColumn);
    const TensorId context = w.attention(q, k, v, shape.heads);
    x = w.residual(x, w.linear(context, h, h, LinearCut::kRow));
    const TensorId up = w.linear(w.norm(x), h, 4 * h, LinearCut::kColumn);
    x = w.residual(x, w.linear(w.gelu(up, 4 * h), 4 * h, h, LinearCut::kRow));
    builder.end_layer(h);
  }
  builder.begin_layer(LayerKind::kHead);
  const TensorId normed = w.norm(x);
  const TensorId logits = w.activation(shape.vocabulary, ActivationCut::kFeatures);
  const TensorId weight =
      shape.tied ? table : w.parameter({h, shape.vocabulary}, ParameterCut::kTensor);
  builder.add({"logits",
               Linear{h, shape.vocabulary, false, LinearCut::kColumn},
               {normed},
               {logits},
               {weight},
               {normed}});
  builder.add({"loss", CrossEntropy{shape.vocabulary}, {logits}, {}, {}, {}});
  builder.end_layer(0);
  return builder.finish(shape.positions, shape.tied);
}

/// Blocks that consist of a router and experts (by default four, two per token).
inline ModelGraph mixture(int blocks, std::int64_t hidden = 64, int experts = 4) {
  const std::int64_t f = 2 * hidden;
  constexpr int kPerToken = 2;
  ModelGraphBuilder builder("tiny-mixture", "mixtral");
  detail::BlockWriter w{builder, hidden};
  const auto routed = [&](std::int64_t width, ActivationCut cut) {
    return builder.add_activation("r", {.width = width, .routed = true, .cut = cut});
  };
  const auto expert_linear = [&](const char* name, TensorId x, std::int64_t in, std::int64_t out,
                                 LinearCut cut) {
    const bool column = cut == LinearCut::kColumn;
    const TensorId y = routed(out, column ? ActivationCut::kFeatures : ActivationCut::kTokens);
    builder.add({name,
                 ExpertLinear{experts, kPerToken, in, out, false, cut},
                 {x},
                 {y},
                 {w.parameter({experts, in, out}, ParameterCut::kExpert)},
                 {x}});
    return y;
  };
  builder.begin_layer(LayerKind::kEmbedding);
  TensorId x = w.activation(hidden);
  builder.add({"words",
               EmbeddingLookup{512, hidden},
               {},
               {x},
               {w.parameter({512, hidden}, ParameterCut::kTensor)},
               {}});
  builder.end_layer(hidden);
  for (int i = 0; i < blocks; ++i) {
    builder.begin_layer(LayerKind::kBlock);
    const TensorId scores =
        builder.add_activation("s", {.width = experts, .element = ElementWidth::kFloat32});
    builder.add({"router",
                 Router{hidden, experts, kPerToken},
                 {x},
                 {scores},
                 {w.parameter({hidden, experts}, ParameterCut::kReplicated)},
                 {x, scores}});
    const TensorId rows = routed(hidden, ActivationCut::kTokens);
    builder.add({"dispatch", TokenDispatch{hidden, kPerToken}, {x, scores}, {rows}, {}, {}});
    const TensorId up = expert_linear("up", rows, hidden, f, LinearCut::kColumn);
    const TensorId act = routed(f, ActivationCut::kFeatures);
    builder.add({"relu", Activation{ActivationKind::kRelu, f, true}, {up}, {act}, {}, {up}});
    const TensorId down = expert_linear("down", act, f, hidden, LinearCut::kRow);
    const TensorId combined = w.activation(hidden);
    builder.add(
        {"combine", TokenCombine{hidden, kPerToken}, {down, scores}, {combined}, {}, {down}});
    x = w.residual(x, combined);
    builder.end_layer(hidden);
  }
  return builder.finish(0, false);
}

/// Nodes of `devices_per_node` equal devices with one port each.
inline Cluster cluster_of(int nodes, int devices_per_node) {
  Cluster cluster;
  cluster.name = "test-cluster";
  DeviceModel device;
  device.name = "test-device";
  device.memory = Bytes(std::int64_t{80} << 30);
  device.reserved_memory = Bytes(std::int64_t{1} << 30);
  device.peak[static_cast<std::size_t>(Dtype::kBf16)] = FlopsPerSecond(300e12);
  device.peak[static_cast<std::size_t>(Dtype::kFp32)] = FlopsPerSecond(20e12);
  device.memory_bandwidth = BytesPerSecond(2e12);
  NodeModel node;
  node.name = "test-node";
  node.device = "test-device";
  node.device_count = devices_per_node;
  node.local.bandwidth = BytesPerSecond(300e9);
  node.ports = devices_per_node;
  node.port_bandwidth = BytesPerSecond(25e9);
  cluster.devices["test-device"] = device;
  cluster.nodes["test-node"] = node;
  cluster.groups.push_back({"test-node", nodes});
  return cluster;
}

/// Blocks distributed evenly over the stages; earlier stages get the remainder.
inline Plan even_plan(const Strategy& strategy, int blocks, int stages) {
  Plan plan{strategy, {}};
  for (int s = 0; s < stages; ++s)
    plan.blocks_per_stage.push_back(blocks / stages + (s < blocks % stages ? 1 : 0));
  return plan;
}

/// Two sequences of 128 tokens in a micro-batch.
inline Strategy strategy_of(ParallelDegrees degrees, std::int64_t microbatches) {
  Strategy s;
  s.degrees = degrees;
  s.micro_batch = 2;
  s.global_batch = 2 * degrees.data * microbatches;
  s.sequence_length = 128;
  s.schedule = degrees.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  return s;
}

inline Plan plan_of(const Strategy& s, int blocks) {
  return even_plan(s, blocks, static_cast<int>(stage_count(s.degrees)));
}

}  // namespace meshwright::testing_models
