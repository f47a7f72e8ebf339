#include <algorithm>
#include <numeric>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

std::int64_t product_of(std::span<const std::int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

[[noreturn]] void refuse_shapes(const NodeContext& node, const char* what) {
  node.fail(std::string("inputs of the shapes ") + to_text(node.dims(0)) + " and " +
                to_text(node.dims(1)) + " cannot be " + what,
            "check the values of --dim and the shapes of the inputs");
}

/// Groups with fewer columns than this leave most of a tile empty; libraries have kernels for them
/// that are bound by memory (depthwise convolutions).
constexpr std::int64_t kFewestColumns = 16;

/// A convolution with its sizes.
struct Convolution {
  ProductSize size;  ///< of the product that it is, per group
  std::int64_t traffic = 0;
};

void add_depthwise(NodeContext& node, const Convolution& convolution) {
  Kernel made = node.kernel(KernelKind::kMemoryBound, Phase::kForward);
  made.flops = node.product_flops(convolution.size);
  made.memory_traffic = Bytes(convolution.traffic);
  node.add_forward(made);
  if (!node.settings().is_training) return;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (!node.needs_gradient(i)) continue;
    node.save_input(1 - i);
    made.phase = i == 0 ? Phase::kBackwardInput : Phase::kBackwardWeight;
    node.add_backward(made);
  }
}

void add_convolution(NodeContext& node, const ProductSize& size) {
  node.require(size.batch >= 1, "the number of groups is out of range");
  if (size.batch > 1 && size.n < kFewestColumns) {
    const std::int64_t traffic =
        node.bytes_of_input(0) + node.bytes_of_input(1) + node.bytes_of_output(0);
    return add_depthwise(node, {size, traffic});
  }
  node.product(size);
  node.bias_gradient(2);
}

/// The dimensions of a product of rows, columns and depth, by inputs 0 and 1, and output 0.
void link_product(NodeContext& node, std::size_t depth_a, std::size_t columns_b,
                  std::size_t depth_b) {
  const std::size_t last = node.output_dims(0).size() - 1;
  node.link(1, columns_b, last);
  node.link(2, node.has_input(2) && node.rank(2) > 0 ? node.rank(2) - 1 : 0, last);
  node.link_inputs(0, depth_a, 1, depth_b);
  node.sum_over(0, depth_a);
}

/// A channel of the output belongs to one of the weights, and one of the bias.
void link_channels(NodeContext& node, std::size_t output_weights, std::size_t input_weights,
                   std::int64_t groups) {
  node.link(0, 0, 0);
  if (groups > 1) {  // of one channel each, as far as they can be divided
    if (groups != node.dims(0)[1] || node.dims(0)[1] != node.output_dims(0)[1]) return;
    node.link(0, 1, 1);
    node.link(1, 0, 1);
    node.link(2, 0, 1);
    return;
  }
  node.link(1, output_weights, 1);
  node.link(2, 0, 1);
  node.link_inputs(0, 1, 1, input_weights);
  node.sum_over(0, 1);
}

}  // namespace

// ---- matrices -------------------------------------------------------------------------------

/// [..., m, k] x [..., k, n]. A matrix on the right serves all rows at once.
void apply_matmul(NodeContext& node) {
  Dimensions a = node.dims(0), b = node.dims(1);
  if (a.empty() || b.empty()) refuse_shapes(node, "multiplied");
  const bool is_row = a.size() == 1, is_column = b.size() == 1;
  if (is_row) a.insert(a.begin(), 1);
  if (is_column) b.push_back(1);
  ProductSize size{.m = a[a.size() - 2], .n = b.back(), .k = a.back()};
  const Dimensions batch_a(a.begin(), a.end() - 2), batch_b(b.begin(), b.end() - 2);
  const auto batch = broadcast(batch_a, batch_b);
  if (size.k != b[b.size() - 2] || !batch) refuse_shapes(node, "multiplied");
  Dimensions dims = *batch;
  if (!is_row) dims.push_back(size.m);
  if (!is_column) dims.push_back(size.n);
  node.set_output(std::move(dims));
  if (!is_row && !is_column) {
    link_product(node, node.rank(0) - 1, node.rank(1) - 1, node.rank(1) - 2);
    const std::size_t rank = node.output_dims(0).size();
    node.link(0, node.rank(0) - 2, rank - 2);
    for (std::size_t back = 3; back <= rank; ++back)
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
        if (back <= node.rank(i)) node.link(i, node.rank(i) - back, rank - back);
  }
  const bool shares_right = product_of(batch_b) == 1;
  (shares_right ? size.m : size.batch) *= product_of(*batch);
  node.product(size);
}

/// [m, k] x [k, n] + [.., n], with either operand transposed.
void apply_gemm(NodeContext& node) {
  if (node.rank(0) != 2 || node.rank(1) != 2) refuse_shapes(node, "multiplied");
  const bool transposes_a = node.integer("transA", 0) != 0;
  const bool transposes_b = node.integer("transB", 0) != 0;
  const ProductSize size{.m = node.dims(0)[transposes_a ? 1 : 0],
                         .n = node.dims(1)[transposes_b ? 0 : 1],
                         .k = node.dims(0)[transposes_a ? 0 : 1]};
  if (size.k != node.dims(1)[transposes_b ? 1 : 0]) refuse_shapes(node, "multiplied");
  node.set_output({size.m, size.n});
  link_product(node, transposes_a ? 0 : 1, transposes_b ? 0 : 1, transposes_b ? 1 : 0);
  node.link(0, transposes_a ? 1 : 0, 0);
  node.product(size);
  node.bias_gradient(2);
}

void apply_linear(NodeContext& node) {
  if (node.rank(0) < 1 || node.rank(1) != 2) refuse_shapes(node, "multiplied");
  const std::int64_t depth = node.dims(0).back(), columns = node.dims(1)[0];
  if (depth != node.dims(1)[1]) refuse_shapes(node, "multiplied");
  Dimensions dims = node.dims(0);
  dims.back() = columns;
  node.set_output(std::move(dims));
  link_product(node, node.rank(0) - 1, 0, 1);
  node.link_leading(node.rank(0) - 1);
  const std::int64_t rows = node.elements(0) / std::max<std::int64_t>(1, depth);
  node.product({.m = rows, .n = columns, .k = depth});
  node.bias_gradient(2);
}

/// Rows [T, k], sorted by group, with matrices [E, k, n]: the experts of a model.
void apply_grouped_matmul(NodeContext& node) {
  if (node.rank(0) != 2 || node.rank(1) != 3) refuse_shapes(node, "multiplied");
  const std::int64_t groups = node.dims(1)[0], depth = node.dims(1)[1], columns = node.dims(1)[2];
  if (node.dims(0)[1] != depth || groups < 1) refuse_shapes(node, "multiplied");
  node.set_output({node.dims(0)[0], columns});
  node.link(0, 0, 0);
  node.link(1, 2, 1);
  node.link_inputs(0, 1, 1, 1);
  node.sum_over(0, 1);
  node.product({.batch = groups,
                .m = divide_up(node.dims(0)[0], groups),
                .n = columns,
                .k = depth,
                .is_grouped = true});
}

// ---- convolutions ---------------------------------------------------------------------------

std::int64_t window_count(const NodeContext& node, const WindowAxis& axis) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto in_range = [](std::int64_t value, std::int64_t least) {
    return value >= least && value <= kMost;
  };
  node.require(in_range(axis.kernel, 1) && in_range(axis.stride, 1) && in_range(axis.dilation, 1) &&
                   in_range(axis.padding, -kMost) && axis.kernel <= kMost / axis.dilation,
               "a kernel size, stride, dilation or padding is out of range");
  const std::int64_t reach = axis.dilation * (axis.kernel - 1) + 1;
  const std::int64_t room = axis.input + axis.padding - reach;
  if (room < 0)
    node.fail("the window is larger than its input", "use a larger input, or set --dim");
  return 1 + (axis.rounds_up ? divide_up(room, axis.stride) : room / axis.stride);
}

Dimensions window_counts(const NodeContext& node, std::span<const std::int64_t> input,
                         std::span<const std::int64_t> kernel) {
  const std::size_t axes = input.size();
  const auto list = [&](const char* name, std::size_t size, std::int64_t otherwise) {
    std::vector<std::int64_t> values = node.integers(name);
    if (values.empty()) values.assign(size, otherwise);
    node.require(values.size() == size, "an attribute has another number of axes than the input");
    return values;
  };
  node.require(kernel.size() == axes, "the kernel has another number of axes than the input");
  const auto strides = list("strides", axes, 1), dilations = list("dilations", axes, 1);
  const auto pads = list("pads", 2 * axes, 0);
  const std::string automatic = node.text("auto_pad", "NOTSET");
  Dimensions counts;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t before = pads[i], after = pads[i + axes];
    node.require(std::abs(before / 2) < kMostElements && std::abs(after / 2) < kMostElements,
                 "a padding is out of range");
    const WindowAxis axis{.input = input[i],
                          .kernel = kernel[i],
                          .stride = strides[i],
                          .dilation = dilations[i],
                          .padding = automatic == "VALID" ? 0 : before + after,
                          .rounds_up = node.integer("ceil_mode", 0) != 0};
    if (automatic.starts_with("SAME")) {
      node.require(axis.stride >= 1, "a stride is out of range");
      counts.push_back(divide_up(axis.input, axis.stride));
      continue;
    }
    const std::int64_t count = window_count(node, axis);
    // No window begins in the padding after the input.
    const bool is_outside = axis.rounds_up && (count - 1) * axis.stride >= axis.input + before;
    counts.push_back(is_outside ? count - 1 : count);
  }
  return counts;
}

/// [N, C, ...] with weights [K, C / groups, ...]: a product of N * windows rows.
void apply_conv(NodeContext& node) {
  if (node.rank(0) < 3 || node.rank(1) != node.rank(0)) refuse_shapes(node, "convolved");
  const Dimensions& x = node.dims(0);
  const Dimensions& weights = node.dims(1);
  const std::int64_t groups = node.integer("group", 1);
  node.require(groups >= 1 && weights[0] % groups == 0, "the groups do not divide the channels");
  if (weights[1] != x[1] / groups || x[1] % groups != 0) refuse_shapes(node, "convolved");
  const std::span<const std::int64_t> window(weights.begin() + 2, weights.end());
  const Dimensions counts = window_counts(node, std::span(x).subspan(2), window);
  Dimensions dims{x[0], weights[0]};
  dims.insert(dims.end(), counts.begin(), counts.end());
  node.set_output(std::move(dims));
  link_channels(node, 0, 1, groups);
  add_convolution(node, {.batch = groups,
                         .m = node.output_elements(0) / std::max<std::int64_t>(1, weights[0]),
                         .n = weights[0] / groups,
                         .k = weights[1] * product_of(window)});
}

/// The gradient of a convolution: [N, C, ...] with weights [C, K / groups, ...]. Every input
/// element is multiplied by the weights of its channel.
void apply_conv_transpose(NodeContext& node) {
  if (node.rank(0) < 3 || node.rank(1) != node.rank(0)) refuse_shapes(node, "convolved");
  const Dimensions& x = node.dims(0);
  const Dimensions& weights = node.dims(1);
  const std::int64_t groups = node.integer("group", 1);
  node.require(groups >= 1 && groups <= kMostElements && x[1] % groups == 0,
               "the groups do not divide the channels");
  if (weights[0] != x[1]) refuse_shapes(node, "convolved");
  const std::size_t axes = x.size() - 2;
  const auto at = [&](const char* name, std::size_t i, std::int64_t otherwise) {
    const std::vector<std::int64_t> values = node.integers(name);
    const std::int64_t value = i < values.size() ? values[i] : otherwise;
    node.require(std::abs(value) <= 1 << 20, "an attribute is out of range");
    return value;
  };
  const bool is_same = node.text("auto_pad", "NOTSET").starts_with("SAME");
  Dimensions dims{x[0], weights[1] * groups};
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t stride = at("strides", i, 1);
    const std::int64_t reach = at("dilations", i, 1) * (weights[i + 2] - 1) + 1;
    const std::int64_t size = stride * (x[i + 2] - 1) + at("output_padding", i, 0) + reach -
                              at("pads", i, 0) - at("pads", i + axes, 0);
    const std::int64_t given = at("output_shape", i, -1);
    dims.push_back(given >= 0 ? given : is_same ? stride * x[i + 2] : size);
  }
  node.set_output(std::move(dims));
  link_channels(node, 1, 0, groups);
  const std::int64_t channels = x[1] / groups;
  add_convolution(node, {.batch = groups,
                         .m = node.elements(0) / std::max<std::int64_t>(1, x[1]),
                         .n = weights[1] * product_of(std::span(weights).subspan(2)),
                         .k = channels});
}

}  // namespace meshwright::onnx
