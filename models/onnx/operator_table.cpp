#include <algorithm>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

void apply_unknown(NodeContext& node) { node.memory_bound(); }

constexpr Saves kInputs = Saves::kInputs, kFactors = Saves::kFactors, kOutput = Saves::kOutput,
                kNothing = Saves::kNothing;

constexpr OperatorRule fused(OperatorRule rule, Fusion fusion = Fusion::kElements) {
  rule.fusion = fusion;
  return rule;
}
/// Element by element: the family of kernels, and what the gradient reads.
constexpr OperatorRule elementwise(std::string_view name, Routine routine, Saves saves) {
  return fused({name, apply_elementwise, routine, saves});
}
constexpr OperatorRule comparison(std::string_view name) { return fused({name, apply_comparison}); }
/// Same elements in another order or shape: of parameters, done once before training.
constexpr OperatorRule layout(std::string_view name, void (*apply)(NodeContext&),
                              Routine routine = Routine::kResidual) {
  return fused({name, apply, routine, kNothing, true});
}
constexpr OperatorRule reduction(std::string_view name, Saves saves) {
  return fused({name, apply_reduction, Routine::kBias, saves}, Fusion::kRows);
}

// Opsets 7 to 23, sorted by name. From com.microsoft: operators that ONNX Runtime's optimizer and
// older exporters write.
constexpr OperatorRule kRules[] = {
    elementwise("Abs", Routine::kResidual, kInputs),
    elementwise("Acos", Routine::kGelu, kInputs),
    elementwise("Acosh", Routine::kGelu, kInputs),
    elementwise("Add", Routine::kResidual, kNothing),
    comparison("And"),
    {"ArgMax", apply_arg_reduction, Routine::kBias},
    {"ArgMin", apply_arg_reduction, Routine::kBias},
    elementwise("Asin", Routine::kGelu, kInputs),
    elementwise("Asinh", Routine::kGelu, kInputs),
    elementwise("Atan", Routine::kGelu, kInputs),
    elementwise("Atanh", Routine::kGelu, kInputs),
    {"Attention", apply_attention, Routine::kAttention},
    {"AveragePool", apply_pool, Routine::kBias},
    {"BatchNormalization", apply_batch_norm, Routine::kLayerNorm},
    {"Bernoulli", apply_like_input},
    elementwise("BiasGelu", Routine::kGelu, kInputs),
    elementwise("BitShift", Routine::kResidual, kNothing),
    elementwise("BitwiseAnd", Routine::kResidual, kNothing),
    elementwise("BitwiseNot", Routine::kResidual, kNothing),
    elementwise("BitwiseOr", Routine::kResidual, kNothing),
    elementwise("BitwiseXor", Routine::kResidual, kNothing),
    layout("Cast", apply_cast),
    layout("CastLike", apply_cast),
    elementwise("Ceil", Routine::kResidual, kNothing),
    elementwise("Celu", Routine::kGelu, kInputs),
    elementwise("Clip", Routine::kRelu, kInputs),
    layout("Concat", apply_concat),
    {"Constant", apply_constant},
    {"ConstantOfShape", apply_constant_of_shape},
    {"Conv", apply_conv, Routine::kResidual},
    {"ConvTranspose", apply_conv_transpose, Routine::kResidual},
    elementwise("Cos", Routine::kGelu, kInputs),
    elementwise("Cosh", Routine::kGelu, kInputs),
    {"CumProd", apply_like_input, Routine::kBias, kInputs},
    {"CumSum", apply_like_input, Routine::kBias},
    {"DepthToSpace", apply_depth_to_space, Routine::kDispatch},
    {"DequantizeLinear", apply_dequantize, Routine::kCast},
    elementwise("Div", Routine::kResidual, kFactors),
    fused({"Dropout", apply_dropout, Routine::kResidual}),
    {"Einsum", apply_einsum, Routine::kResidual},
    elementwise("Elu", Routine::kGelu, kOutput),
    comparison("Equal"),
    elementwise("Erf", Routine::kGelu, kInputs),
    elementwise("Exp", Routine::kGelu, kOutput),
    fused({"Expand", apply_expand}),
    {"EyeLike", apply_like_input},
    elementwise("FastGelu", Routine::kGelu, kInputs),
    layout("Flatten", apply_flatten),
    elementwise("Floor", Routine::kResidual, kNothing),
    {"GRU", apply_recurrent, Routine::kGelu},
    {"Gather", apply_gather, Routine::kEmbedding},
    {"GatherElements", apply_gather_elements, Routine::kEmbedding},
    {"GatherND", apply_gather_nd, Routine::kEmbedding},
    elementwise("Gelu", Routine::kGelu, kInputs),
    {"Gemm", apply_gemm, Routine::kResidual},
    {"GlobalAveragePool", apply_global_pool, Routine::kBias},
    {"GlobalMaxPool", apply_global_pool, Routine::kBias},
    comparison("Greater"),
    comparison("GreaterOrEqual"),
    {"GroupNormalization", apply_channel_norm, Routine::kLayerNorm},
    elementwise("HardSigmoid", Routine::kGelu, kInputs),
    elementwise("HardSwish", Routine::kGelu, kInputs),
    {"Hardmax", apply_like_input, Routine::kSoftmax, kNothing},
    layout("Identity", apply_identity),
    {"InstanceNormalization", apply_channel_norm, Routine::kLayerNorm},
    comparison("IsInf"),
    comparison("IsNaN"),
    {"LRN", apply_like_input, Routine::kLayerNorm, kInputs},
    {"LSTM", apply_recurrent, Routine::kGelu},
    {"LayerNormalization", apply_row_norm, Routine::kLayerNorm},
    elementwise("LeakyRelu", Routine::kRelu, kOutput),
    comparison("Less"),
    comparison("LessOrEqual"),
    elementwise("Log", Routine::kGelu, kInputs),
    fused({"LogSoftmax", apply_softmax, Routine::kSoftmax, kOutput}, Fusion::kRows),
    {"LpNormalization", apply_like_input, Routine::kLayerNorm, kInputs},
    {"LpPool", apply_pool, Routine::kBias},
    {"MatMul", apply_matmul, Routine::kResidual},
    elementwise("Max", Routine::kResidual, kInputs),
    {"MaxPool", apply_pool, Routine::kResidual},
    elementwise("Mean", Routine::kResidual, kNothing),
    {"MeanVarianceNormalization", apply_like_input, Routine::kLayerNorm, kInputs},
    elementwise("Min", Routine::kResidual, kInputs),
    elementwise("Mish", Routine::kGelu, kInputs),
    elementwise("Mod", Routine::kResidual, kNothing),
    elementwise("Mul", Routine::kResidual, kFactors),
    elementwise("Neg", Routine::kResidual, kNothing),
    {"NegativeLogLikelihoodLoss", apply_log_likelihood_loss, Routine::kCrossEntropy},
    comparison("Not"),
    {"OneHot", apply_one_hot, Routine::kEmbedding},
    comparison("Or"),
    elementwise("PRelu", Routine::kRelu, kInputs),
    layout("Pad", apply_pad),
    elementwise("Pow", Routine::kGelu, kInputs),
    {"QuantizeLinear", apply_quantize, Routine::kCast},
    elementwise("QuickGelu", Routine::kGelu, kInputs),
    {"RMSNormalization", apply_row_norm, Routine::kRmsNorm},
    {"RNN", apply_recurrent, Routine::kGelu},
    {"RandomNormal", apply_random},
    {"RandomNormalLike", apply_like_input},
    {"RandomUniform", apply_random},
    {"RandomUniformLike", apply_like_input},
    {"Range", apply_range},
    elementwise("Reciprocal", Routine::kGelu, kOutput),
    reduction("ReduceL1", kInputs),
    reduction("ReduceL2", kInputs),
    reduction("ReduceLogSum", kInputs),
    reduction("ReduceLogSumExp", kInputs),
    reduction("ReduceMax", kInputs),
    reduction("ReduceMean", kNothing),
    reduction("ReduceMin", kInputs),
    reduction("ReduceProd", kInputs),
    reduction("ReduceSum", kNothing),
    reduction("ReduceSumSquare", kInputs),
    elementwise("Relu", Routine::kRelu, kOutput),
    layout("Reshape", apply_reshape),
    {"Resize", apply_resize, Routine::kResidual},
    {"RotaryEmbedding", apply_like_input, Routine::kRotary},
    elementwise("Round", Routine::kResidual, kNothing),
    {"Scatter", apply_scatter, Routine::kDispatch},
    {"ScatterElements", apply_scatter, Routine::kDispatch},
    {"ScatterND", apply_scatter, Routine::kDispatch},
    elementwise("Selu", Routine::kGelu, kOutput),
    {"Shape", apply_shape},
    elementwise("Shrink", Routine::kRelu, kInputs),
    elementwise("Sigmoid", Routine::kGelu, kOutput),
    elementwise("Sign", Routine::kResidual, kNothing),
    elementwise("Sin", Routine::kGelu, kInputs),
    elementwise("Sinh", Routine::kGelu, kInputs),
    {"Size", apply_size},
    layout("Slice", apply_slice),
    fused({"Softmax", apply_softmax, Routine::kSoftmax, kOutput}, Fusion::kRows),
    {"SoftmaxCrossEntropyLoss", apply_loss, Routine::kCrossEntropy},
    elementwise("Softplus", Routine::kGelu, kInputs),
    elementwise("Softsign", Routine::kGelu, kInputs),
    {"SpaceToDepth", apply_space_to_depth, Routine::kDispatch},
    layout("Split", apply_split),
    elementwise("Sqrt", Routine::kGelu, kOutput),
    layout("Squeeze", apply_squeeze),
    elementwise("Sub", Routine::kResidual, kNothing),
    elementwise("Sum", Routine::kResidual, kNothing),
    elementwise("Swish", Routine::kGelu, kInputs),
    elementwise("Tan", Routine::kGelu, kOutput),
    elementwise("Tanh", Routine::kGelu, kOutput),
    elementwise("ThresholdedRelu", Routine::kRelu, kInputs),
    {"Tile", apply_tile},
    {"TopK", apply_top_k, Routine::kRouting},
    layout("Transpose", apply_transpose, Routine::kDispatch),
    fused({"Trilu", apply_like_input}),
    layout("Unsqueeze", apply_unsqueeze),
    {"Upsample", apply_resize, Routine::kResidual},
    fused({"Where", apply_where, Routine::kResidual, kNothing}),
    comparison("Xor"),
};

static_assert(std::ranges::is_sorted(kRules, {}, &OperatorRule::name));

/// Of the domain "meshwright".
constexpr OperatorRule kOwnRules[] = {
    fused({"Copy", apply_copy, Routine::kResidual, kNothing, true, true}),
    {"GroupedMatMul", apply_grouped_matmul},
    {"Linear", apply_linear},
    fused({"View", apply_view, Routine::kResidual, kNothing, true, true}),
};

constexpr OperatorRule kMemoryBound{"",    apply_unknown, Routine::kResidual, Saves::kInputs,
                                    false, true};

const OperatorRule* find_in(std::span<const OperatorRule> rules, std::string_view name) {
  const auto found = std::ranges::lower_bound(rules, name, {}, &OperatorRule::name);
  return found != rules.end() && found->name == name ? &*found : nullptr;
}

}  // namespace

const OperatorRule* find_rule(const Node& node) {
  if (node.domain == "meshwright") return find_in(kOwnRules, node.operation);
  const bool is_known_domain =
      node.domain.empty() || node.domain == "ai.onnx" || node.domain == "com.microsoft";
  if (!is_known_domain) return nullptr;
  return find_in(kRules, node.operation);
}

const OperatorRule& memory_bound_rule() { return kMemoryBound; }

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const OperatorRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace meshwright::onnx
