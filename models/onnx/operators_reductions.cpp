// Reductions, normalization, softmax and pooling.
#include <algorithm>
#include <numeric>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

/// The shape without the axes, or with 1 in their place.
void set_reduced(NodeContext& node, const std::optional<std::vector<std::int64_t>>& axes,
                 bool keeps, ElementType type) {
  std::vector<bool> is_reduced(node.rank(0), !axes);
  if (axes)
    for (const std::int64_t axis : *axes) is_reduced[node.axis_of(axis, node.rank(0))] = true;
  Dimensions dims;
  std::vector<std::size_t> place(node.rank(0));
  for (std::size_t i = 0; i < node.rank(0); ++i) {
    place[i] = dims.size();
    if (!is_reduced[i])
      dims.push_back(node.dims(0)[i]);
    else if (keeps)
      dims.push_back(1);
  }
  node.set_output(0, std::move(dims), type);
  for (std::size_t i = 0; i < node.rank(0); ++i)
    if (!is_reduced[i]) node.link(0, i, place[i]);
}

/// Of all elements of a vector, which is how sizes are computed from shapes.
void fold_reduction(NodeContext& node) {
  const std::optional<std::vector<double>>& value = node.input(0).value;
  if (!value || value->empty() || node.output_elements(0) != 1) return;
  const std::string& name = node.node().operation;
  double result = 0;
  if (name == "ReduceProd")
    result = std::accumulate(value->begin(), value->end(), 1.0, std::multiplies<>());
  else if (name == "ReduceSum")
    result = std::accumulate(value->begin(), value->end(), 0.0);
  else if (name == "ReduceMax")
    result = *std::ranges::max_element(*value);
  else if (name == "ReduceMin")
    result = *std::ranges::min_element(*value);
  else
    return;
  node.set_value(0, {result});
}

/// Elements of the axes from `axis` on, and the number of rows of that size.
struct Rows {
  std::int64_t count = 1, width = 1;
};
Rows rows_of(const Dimensions& dims, std::size_t axis) {
  Rows rows;
  for (std::size_t i = 0; i < dims.size(); ++i) (i < axis ? rows.count : rows.width) *= dims[i];
  return rows;
}

/// Saves the input, and fp32 statistics per row; the gradient reads the input, and adds those of
/// the weights.
void normalize(NodeContext& node, std::int64_t rows, std::int64_t statistics, int input_reads) {
  const std::int64_t in = node.bytes_of_input(0), out = node.bytes_of_output(0);
  std::int64_t weights = 0;
  for (std::size_t i = 1; i < node.input_count(); ++i) weights += node.bytes_of_input(i);
  const std::int64_t saved = rows * statistics * kFloat32Bytes;
  if (node.settings().is_training && node.any_needs_gradient()) {
    node.save_input(0);
    node.save(saved);
  }
  node.memory_bound(input_reads * in + out + weights,
                    input_reads * (in + out) + in + saved + weights);
}

}  // namespace

void apply_reduction(NodeContext& node) {
  const bool keeps = node.integer("keepdims", 1) != 0;
  std::optional<std::vector<std::int64_t>> axes = node.integers_of_input_or_attribute(1, "axes");
  if (axes && axes->empty()) axes.reset();
  if (!axes && node.integer("noop_with_empty_axes", 0) != 0) return apply_identity(node);
  set_reduced(node, axes, keeps, node.input(0).type);
  fold_reduction(node);
  node.memory_bound();
}

void apply_arg_reduction(NodeContext& node) {
  const std::vector<std::int64_t> axis{node.integer("axis", 0)};
  set_reduced(node, axis, node.integer("keepdims", 1) != 0, ElementType::kInt64);
  node.memory_bound();
}

void apply_top_k(NodeContext& node) {
  Dimensions dims = node.dims(0);
  const auto count = node.integers_of_input_or_attribute(1, "k");
  const Attribute* attribute = node.attribute("k");
  const std::int64_t k = count && !count->empty() ? count->front()
                         : attribute              ? attribute->integer
                                                  : -1;
  node.require(k >= 0, "missing k");
  dims[node.axis_of(node.integer("axis", -1), dims.size())] = k;
  node.set_output(0, dims, node.input(0).type);
  node.set_output(1, dims, ElementType::kInt64);
  node.memory_bound();
}

/// Devices that have parts of its rows need their maxima and sums. Before opset 13 a row had all
/// dimensions from the axis on.
void apply_softmax(NodeContext& node) {
  constexpr std::int64_t kOneAxis = 13;
  node.set_output(node.dims(0));
  const bool has_one_axis = node.settings().opset == 0 || node.settings().opset >= kOneAxis;
  const auto rank = static_cast<std::int64_t>(node.rank(0));
  std::int64_t axis = node.integer("axis", has_one_axis ? -1 : 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) axis = rank;
  const auto place = static_cast<std::size_t>(axis);
  node.link_leading(has_one_axis ? node.rank(0) : place);
  if (has_one_axis && axis < rank && node.dims(0)[place] > 0)
    node.sum_statistics(0, place, node.elements(0) / node.dims(0)[place] * kFloat32Bytes);
  node.memory_bound();
}

/// Over the axes from `axis` on: mean and 1/deviation per row, or 1/rms.
void apply_row_norm(NodeContext& node) {
  const std::size_t axis = node.axis_of(node.integer("axis", -1), node.rank(0));
  const Rows rows = rows_of(node.dims(0), axis);
  Dimensions statistics = node.dims(0);
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  node.set_output(node.dims(0));
  for (std::size_t i = 1; i < node.output_count(); ++i)
    node.set_output(i, statistics, ElementType::kFloat);
  node.link_leading(axis);
  const bool has_mean = node.rule().routine == Routine::kLayerNorm;
  normalize(node, rows.count, has_mean ? 2 : 1, 1);
}

/// [N, C, ...]: the statistics of a channel need its elements before the first one is written, so
/// that training reads the input twice. Inference has running means.
void apply_batch_norm(NodeContext& node) {
  node.exclude_parameter(3);
  node.exclude_parameter(4);
  node.set_output(node.dims(0));
  for (std::size_t i = 1; i < node.output_count(); ++i)
    node.set_output(i, node.dims(3), node.input(3).type);
  if (node.rank(0) > 1)
    for (std::size_t i = 0; i < 3; ++i) node.link(i, i == 0 ? 1 : 0, 1);
  const std::int64_t channels = node.rank(0) > 1 ? node.dims(0)[1] : 1;
  normalize(node, channels, 2, node.settings().is_training ? 2 : 1);
}

/// Per sample and channel, or group of channels; the input is read twice.
void apply_channel_norm(NodeContext& node) {
  node.require(node.rank(0) >= 2, "an input without channels");
  node.set_output(node.dims(0));
  const std::int64_t groups = node.integer("num_groups", node.dims(0)[1]);
  node.require(groups >= 1 && groups <= std::max<std::int64_t>(1, node.dims(0)[1]),
               "the number of groups is out of range");
  node.link_leading(1);
  normalize(node, node.dims(0)[0] * groups, 2, 2);
}

void apply_pool(NodeContext& node) {
  node.require(node.rank(0) >= 3, "an input without spatial axes");
  const Dimensions& x = node.dims(0);
  const std::vector<std::int64_t> kernel = node.integers("kernel_shape");
  const Dimensions counts = window_counts(node, std::span(x).subspan(2), kernel);
  Dimensions dims{x[0], x[1]};
  dims.insert(dims.end(), counts.begin(), counts.end());
  node.set_output(dims);
  node.set_output(1, dims, ElementType::kInt64);
  node.link_leading(2);
  const std::int64_t in = node.bytes_of_input(0), out = node.bytes_of_output(0);
  // Maxima are found again by an index of 8 bytes each, as in PyTorch.
  constexpr std::int64_t kIndexBytes = 8;
  const bool is_maximum = node.node().operation == "MaxPool" && node.any_needs_gradient();
  const std::int64_t indices = is_maximum ? kIndexBytes * node.output_elements(0) : 0;
  if (node.settings().is_training) node.save(indices);
  node.memory_bound(in + out + indices, in + out + indices);
}

void apply_global_pool(NodeContext& node) {
  node.require(node.rank(0) >= 3, "an input without spatial axes");
  Dimensions dims(node.rank(0), 1);
  dims[0] = node.dims(0)[0];
  dims[1] = node.dims(0)[1];
  node.set_output(std::move(dims));
  node.link_leading(2);
  node.memory_bound();
}

namespace {

void set_loss(NodeContext& node) {
  const bool is_mean = node.text("reduction", "mean") != "none";
  node.set_output(0, is_mean ? Dimensions{} : node.dims(1), node.input(0).type);
  // Devices with parts of the classes add up what each finds of the labels.
  if (node.rank(0) > 1) node.sum_over(0, 1);
}

}  // namespace

/// Of logarithms [N, C, ...] and labels: reads one of each row, and writes all of the gradient.
void apply_log_likelihood_loss(NodeContext& node) {
  set_loss(node);
  const std::int64_t rows = node.elements(1) * node.element_bytes();
  node.memory_bound(rows + node.bytes_of_input(1), rows + node.bytes_of_input(0));
}

/// Cross entropy of scores [N, C, ...] and labels: three sweeps (maximum, sum of exponentials,
/// label) over the scores and their logarithms in fp32, which are kept; the gradient is one sweep.
void apply_loss(NodeContext& node) {
  constexpr int kForwardSweeps = 3;
  set_loss(node);
  node.set_output(1, node.dims(0), node.input(0).type);
  if (node.rank(0) > 1) node.sum_statistics(0, 1, node.elements(1) * kFloat32Bytes);
  const std::int64_t bytes = node.elements(0) * (node.element_bytes() + kFloat32Bytes);
  Kernel made = node.kernel(KernelKind::kMemoryBound, Phase::kForward);
  made.memory_traffic = Bytes(bytes);
  made.launches = kForwardSweeps;
  node.add_forward(made);
  if (!node.settings().is_training || !node.any_needs_gradient()) return;
  node.save(node.elements(0) * kFloat32Bytes);
  made.phase = Phase::kBackwardInput;
  made.launches = 1;
  node.add_backward(made);
}

}  // namespace meshwright::onnx
