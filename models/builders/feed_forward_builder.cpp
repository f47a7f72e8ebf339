#include <fmt/format.h>

#include "models/builders/transformer_builder.hpp"

namespace meshwright {
namespace {

struct DenseSpec {
  std::string name;
  FeedForwardConfig shape;
};

/// Two matrices with an activation in between, or three if it is gated (gate and up in one GEMM).
TensorId write_dense(GraphWriter& writer, std::int64_t hidden, const DenseSpec& spec,
                     TensorId input) {
  const std::int64_t width = spec.shape.width;
  const bool gated = is_gated(spec.shape.activation);
  LinearSpec up{.name = fmt::format("{}.{}", spec.name, gated ? "gate_up" : "up"),
                .in = hidden,
                .out = gated ? 2 * width : width,
                .bias = spec.shape.bias,
                .cut = LinearCut::kColumn};
  if (gated) up.output_widths = {width, width};
  const std::vector<TensorId> raised = writer.linears(up, input);
  const std::string activation_name = fmt::format("{}.activation", spec.name);
  const TensorId activated =
      writer.activation(activation_name, {.width = width, .cut = ActivationCut::kFeatures});
  writer.add(activation_name,
             {.shape = Activation{spec.shape.activation, width, false, spec.shape.limit},
              .inputs = raised,
              .outputs = {activated},
              .kept = raised});
  return writer.linear({.name = fmt::format("{}.down", spec.name),
                        .in = width,
                        .out = hidden,
                        .bias = spec.shape.bias,
                        .cut = LinearCut::kRow,
                        .into_residual = true},
                       activated);
}

/// Scores over the experts, in fp32; saved for the gradient of the router.
TensorId write_router(GraphWriter& writer, std::int64_t hidden, const ExpertsConfig& e,
                      TensorId input) {
  std::vector<TensorId> parameters{writer.parameter("router.weight", {{e.experts, hidden}})};
  if (e.router_bias) parameters.push_back(writer.parameter("router.bias", {{e.experts}}));
  if (e.score_correction)
    parameters.push_back(
        writer.parameter("router.score_correction",
                         {{e.experts}, ParameterCut::kReplicated, /*trained_by_gradient=*/false}));
  const TensorId scores =
      writer.activation("router.scores", {.width = e.experts, .element = ElementWidth::kFloat32});
  writer.add("router",
             {.shape = Router{hidden, e.experts, e.experts_per_token, e.score, e.normalized,
                              e.scale, e.groups, e.chosen_groups, e.scores_per_group},
              .inputs = {input},
              .outputs = {scores},
              .parameters = std::move(parameters),
              .kept = {input, scores}});
  return scores;
}

struct ExpertLinearSpec {
  std::string name;
  std::int64_t in = 0, out = 0;
  LinearCut cut = LinearCut::kColumn;
};

TensorId write_expert_linear(GraphWriter& writer, const ExpertsConfig& e,
                             const ExpertLinearSpec& spec, TensorId input) {
  std::vector<TensorId> parameters{
      writer.parameter(fmt::format("{}.weight", spec.name),
                       {{e.experts, spec.in, spec.out}, ParameterCut::kExpert})};
  if (e.bias)
    parameters.push_back(writer.parameter(fmt::format("{}.bias", spec.name),
                                          {{e.experts, spec.out}, ParameterCut::kExpert}));
  const TensorId output = writer.activation(
      spec.name,
      {.width = spec.out,
       .routed = true,
       .cut = spec.cut == LinearCut::kColumn ? ActivationCut::kFeatures : ActivationCut::kTokens});
  writer.add(spec.name, {.shape = ExpertLinear{e.experts, e.experts_per_token, spec.in, spec.out,
                                               e.bias, spec.cut},
                         .inputs = {input},
                         .outputs = {output},
                         .parameters = std::move(parameters),
                         .kept = {input}});
  return output;
}

/// Dispatch, two grouped GEMMs around a gated activation, and the sum of K outputs. What is
/// weighted is saved, inputs or outputs of the experts: the gradient of a routing weight needs
/// them.
TensorId write_experts(GraphWriter& writer, std::int64_t hidden, const ExpertsConfig& e,
                       TensorId input) {
  const TensorId scores = write_router(writer, hidden, e, input);
  const TensorId rows = writer.activation("experts.rows", {.width = hidden, .routed = true});
  const auto kept_if = [](bool weighted, TensorId tensor) {
    return weighted ? std::vector{tensor} : std::vector<TensorId>{};
  };
  writer.add("experts.dispatch",
             {.shape = TokenDispatch{hidden, e.experts_per_token, e.weighted_inputs},
              .inputs = {input, scores},
              .outputs = {rows},
              .kept = kept_if(e.weighted_inputs, input)});
  const TensorId raised =
      write_expert_linear(writer, e, {"experts.gate_up", hidden, 2 * e.width}, rows);
  const TensorId activated = writer.activation(
      "experts.activation", {.width = e.width, .routed = true, .cut = ActivationCut::kFeatures});
  writer.add("experts.activation", {.shape = Activation{e.activation, e.width, true, e.limit},
                                    .inputs = {raised},
                                    .outputs = {activated},
                                    .kept = {raised}});
  const TensorId lowered =
      write_expert_linear(writer, e, {"experts.down", e.width, hidden, LinearCut::kRow}, activated);
  const TensorId combined = writer.activation("experts.combine", {.width = hidden});
  writer.add("experts.combine",
             {.shape = TokenCombine{hidden, e.experts_per_token, !e.weighted_inputs},
              .inputs = {lowered, scores},
              .outputs = {combined},
              .kept = kept_if(!e.weighted_inputs, lowered)});
  return combined;
}

/// Experts that every token visits, in addition to the routed ones.
TensorId write_shared_experts(GraphWriter& writer, std::int64_t hidden, const ExpertsConfig& e,
                              TensorId input) {
  const FeedForwardConfig shape{.width = e.shared_width, .activation = e.activation};
  const TensorId output = write_dense(writer, hidden, {"shared_experts", shape}, input);
  if (!e.shared_gate) return output;
  const TensorId weight = writer.parameter("shared_experts.gate.weight", {{hidden, 1}});
  const TensorId gate = writer.activation("shared_experts.gate", {.width = 1});
  writer.add("shared_experts.gate", {.shape = Linear{hidden, 1, false, LinearCut::kReplicated},
                                     .inputs = {input},
                                     .outputs = {gate},
                                     .parameters = {weight},
                                     .kept = {input}});
  // sigmoid(x w) scales the output: the product saves both factors for its gradient.
  const TensorId gated = writer.activation("shared_experts.gated", {.width = hidden});
  writer.add("shared_experts.gated", {.shape = RowGate{hidden},
                                      .inputs = {output, gate},
                                      .outputs = {gated},
                                      .kept = {output, gate}});
  return gated;
}

}  // namespace

TensorId write_feed_forward(GraphWriter& writer, const TransformerConfig& config,
                            const LayerConfig& layer, TensorId input) {
  if (!layer.uses_experts)
    return write_dense(writer, config.hidden, {"feed_forward", config.feed_forward}, input);
  const ExpertsConfig& e = config.experts;
  const TensorId routed = write_experts(writer, config.hidden, e, input);
  if (e.shared_width == 0) return routed;
  const TensorId shared = write_shared_experts(writer, config.hidden, e, input);
  return writer.residual("experts.sum", routed, shared, config.hidden, 0);
}

}  // namespace meshwright
