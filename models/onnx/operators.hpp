/// The rules of the operators of ONNX: shapes, values, and work.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/onnx/node_context.hpp"

namespace meshwright::onnx {

/// The rule of an operator; null if it is unknown.
const OperatorRule* find_rule(const Node& node);
/// Every input is read and every output written once. For unknown operators, on request.
const OperatorRule& memory_bound_rule();
/// Names of all operators with a rule, for suggestions.
std::vector<std::string> operator_names();

// Element by element, with broadcasting.
void apply_elementwise(NodeContext& node);
void apply_comparison(NodeContext& node);
void apply_where(NodeContext& node);
void apply_cast(NodeContext& node);
void apply_quantize(NodeContext& node);
void apply_dequantize(NodeContext& node);
void apply_identity(NodeContext& node);
void apply_dropout(NodeContext& node);

// Constants and shapes.
void apply_constant(NodeContext& node);
void apply_constant_of_shape(NodeContext& node);
void apply_shape(NodeContext& node);
void apply_size(NodeContext& node);
void apply_range(NodeContext& node);
void apply_one_hot(NodeContext& node);
void apply_random(NodeContext& node);      ///< shape in an attribute
void apply_like_input(NodeContext& node);  ///< one output like the first input

// Views and copies.
void apply_reshape(NodeContext& node);
void apply_flatten(NodeContext& node);
void apply_squeeze(NodeContext& node);
void apply_unsqueeze(NodeContext& node);
void apply_transpose(NodeContext& node);
void apply_slice(NodeContext& node);
void apply_concat(NodeContext& node);
void apply_split(NodeContext& node);
void apply_gather(NodeContext& node);
void apply_gather_elements(NodeContext& node);
void apply_gather_nd(NodeContext& node);
void apply_scatter(NodeContext& node);
void apply_expand(NodeContext& node);
void apply_tile(NodeContext& node);
void apply_pad(NodeContext& node);
void apply_resize(NodeContext& node);
void apply_depth_to_space(NodeContext& node);
void apply_space_to_depth(NodeContext& node);

// Of the domain "meshwright", which meshwright.export_graph writes: shapes are in the file.
void apply_view(NodeContext& node);  ///< of the first input
void apply_copy(NodeContext& node);  ///< of as many elements as the outputs have
void apply_grouped_matmul(NodeContext& node);
void apply_linear(NodeContext& node);  ///< x [..., k] times w [n, k], and perhaps a bias

// Products.
void apply_matmul(NodeContext& node);
void apply_gemm(NodeContext& node);
void apply_conv(NodeContext& node);
void apply_conv_transpose(NodeContext& node);
void apply_einsum(NodeContext& node);
void apply_attention(NodeContext& node);

// Reductions, normalization and pooling.
void apply_reduction(NodeContext& node);
void apply_arg_reduction(NodeContext& node);
void apply_top_k(NodeContext& node);
void apply_softmax(NodeContext& node);
void apply_row_norm(NodeContext& node);  ///< layer and RMS norm
void apply_batch_norm(NodeContext& node);
void apply_channel_norm(NodeContext& node);  ///< instance and group norm
void apply_pool(NodeContext& node);
void apply_global_pool(NodeContext& node);
void apply_loss(NodeContext& node);
void apply_log_likelihood_loss(NodeContext& node);

// Recurrent layers.
void apply_recurrent(NodeContext& node);

// For the rules.
/// The row-major strides of a shape.
std::vector<std::int64_t> strides_of(const Dimensions& dims);
/// The result of an elementwise operator on known values; empty if it is not one that shapes are
/// computed with.
std::optional<std::vector<double>> fold_elementwise(const NodeContext& node,
                                                    const Dimensions& result);
/// Output size of a window along one axis.
struct WindowAxis {
  std::int64_t input = 0, kernel = 1, stride = 1, dilation = 1, padding = 0;
  bool rounds_up = false;
};
std::int64_t window_count(const NodeContext& node, const WindowAxis& axis);
/// Sizes of the output of a convolution or pool over all spatial axes.
Dimensions window_counts(const NodeContext& node, std::span<const std::int64_t> input,
                         std::span<const std::int64_t> kernel);

}  // namespace meshwright::onnx
