// Operators that give the same elements another shape, and transposes. As in PyTorch, a transpose
// is a view, and reshaping one copies it.
#include <algorithm>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

/// Output 0 has the elements of input 0 in the shape `dims`.
void set_shape(NodeContext& node, Dimensions dims) {
  const std::int64_t elements = node.elements(0);
  if (element_count(dims) != elements)
    node.fail(
        "a tensor of the shape " + to_text(node.dims(0)) + " cannot get the shape " + to_text(dims),
        "check the values of --dim: the model may have fixed sizes");
  node.set_output(std::move(dims));
  node.link_reshaped();
  if (node.input(0).value) node.set_value(0, *node.input(0).value);
}

void set_view(NodeContext& node, Dimensions dims) {
  set_shape(node, std::move(dims));
  node.share_memory();
}

/// A view, unless the axes were in another order.
void set_reshaped(NodeContext& node, Dimensions dims) {
  set_shape(node, std::move(dims));
  node.input(0).is_transposed ? node.memory_bound() : node.share_memory();
}

/// Axes of input 1 or of the attribute, as sorted indices of a tensor of `rank` dimensions.
std::optional<std::vector<std::size_t>> given_axes(const NodeContext& node, std::size_t rank) {
  const auto given = node.integers_of_input_or_attribute(1, "axes");
  if (!given) return std::nullopt;
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : *given) axes.push_back(node.axis_of(axis, rank));
  std::ranges::sort(axes);
  node.require(std::ranges::adjacent_find(axes) == axes.end(), "an axis is given twice");
  return axes;
}

}  // namespace

std::vector<std::int64_t> strides_of(const Dimensions& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// 0 keeps a dimension (unless `allowzero`), -1 takes what is left.
void apply_reshape(NodeContext& node) {
  const auto given = node.integers_of_input_or_attribute(1, "shape");
  node.require(given.has_value(), "missing shape");
  Dimensions dims = *given;
  node.require(dims.size() <= kMostDimensions, "too many dimensions");
  const bool keeps_zeros = node.integer("allowzero", 0) != 0;
  Dimensions others;  // without the open one
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 0 && !keeps_zeros) {
      node.require(i < node.rank(0), "the shape keeps a dimension that the input does not have");
      dims[i] = node.dims(0)[i];
    }
    node.require(dims[i] != -1 || !open, "the shape has -1 twice");
    if (dims[i] == -1)
      open = i;
    else
      others.push_back(dims[i]);
  }
  const auto known = element_count(others);
  node.require(known.has_value(), "a dimension is out of range");
  if (open) dims[*open] = *known == 0 ? 0 : node.elements(0) / *known;
  set_reshaped(node, std::move(dims));
}

void apply_flatten(NodeContext& node) {
  const auto rank = static_cast<std::int64_t>(node.rank(0));
  std::int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += rank;
  node.require(axis >= 0 && axis <= rank, "the axis is out of range");
  std::int64_t rows = 1, columns = 1;
  for (std::int64_t i = 0; i < rank; ++i)
    (i < axis ? rows : columns) *= node.dims(0)[static_cast<std::size_t>(i)];
  set_reshaped(node, {rows, columns});
}

void apply_squeeze(NodeContext& node) {
  const auto axes = given_axes(node, node.rank(0));
  Dimensions dims;
  for (std::size_t i = 0; i < node.rank(0); ++i) {
    const std::int64_t dim = node.dims(0)[i];
    const bool is_removed = axes ? std::ranges::binary_search(*axes, i) : dim == 1;
    if (!is_removed) dims.push_back(dim);
  }
  set_view(node, std::move(dims));
}

void apply_unsqueeze(NodeContext& node) {
  const auto given = node.integers_of_input_or_attribute(1, "axes");
  node.require(given.has_value(), "missing axes");
  const std::size_t rank = node.rank(0) + given->size();
  node.require(rank <= kMostDimensions, "too many dimensions");
  Dimensions dims = node.dims(0);
  const auto axes = given_axes(node, rank);
  for (const std::size_t axis : *axes)
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  set_view(node, std::move(dims));
}

void apply_transpose(NodeContext& node) {
  std::vector<std::int64_t> order = node.integers("perm");
  const std::size_t rank = node.rank(0);
  if (order.empty())
    for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  node.require(order.size() == rank, "the permutation has another number of dimensions");
  Dimensions dims;
  std::vector<bool> is_used(rank, false);
  for (const std::int64_t axis : order) {
    const std::size_t index = node.axis_of(axis, rank);
    node.require(!is_used[index], "the permutation has an axis twice");
    is_used[index] = true;
    dims.push_back(node.dims(0)[index]);
  }
  const auto is_wide = [](std::int64_t dim) { return dim > 1; };
  const bool keeps_order = std::ranges::count_if(dims, is_wide) <= 1;
  if (keeps_order) return set_view(node, std::move(dims));
  node.set_output(std::move(dims));
  for (std::size_t d = 0; d < rank; ++d) node.link(0, node.axis_of(order[d], rank), d);
  node.share_memory_transposed();
}

}  // namespace meshwright::onnx
