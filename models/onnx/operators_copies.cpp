// Slices and expanded tensors, which are views as in PyTorch, and operators that copy elements:
// concatenation, gathers, padding.
#include <algorithm>
#include <cmath>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

/// Of an operator that PyTorch calls a view: it reshapes if it keeps the number of elements, and
/// slices or expands if it keeps the number of dimensions.
void link_view(NodeContext& node) {
  if (!node.has_output(0)) return;
  if (node.elements(0) == node.output_elements(0)) return node.link_reshaped();
  if (node.rank(0) == node.output_dims(0).size()) node.link_aligned(0);
}

/// Reads and writes the elements of the output; the gradient writes that of the whole input.
void copy_selected(NodeContext& node) {
  std::int64_t out = 0;
  for (std::size_t i = 0; i < node.output_count(); ++i) out += node.bytes_of_output(i);
  node.memory_bound(2 * out, out + node.bytes_of_input(0));
}

/// The dimensions that keep their size: others mix elements.
void link_equal(NodeContext& node) {
  for (std::size_t d = 0; d < node.rank(0); ++d)
    if (node.dims(0)[d] == node.output_dims(0)[d]) node.link(0, d, d);
}

struct Slice {
  std::int64_t start = 0, step = 1, count = 0;
};

/// `start` and `end` as in numpy: negative ones count from the end, and both are clamped.
Slice slice_of(const NodeContext& node, std::int64_t start, std::int64_t end, std::int64_t step,
               std::int64_t size) {
  node.require(step != 0, "a slice has the step 0");
  const auto index = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
    return std::clamp(at < 0 ? std::max<std::int64_t>(at + size, -1) : at, least, most);
  };
  if (step > 0) {
    const std::int64_t first = index(std::max(start, -size), 0, size);
    const std::int64_t last = index(std::max(end, -size), 0, size);
    const std::int64_t length = std::max<std::int64_t>(0, last - first);
    return {first, step, length == 0 ? 0 : 1 + (length - 1) / step};
  }
  const std::int64_t first = index(start, -1, size - 1), last = index(end, -1, size - 1);
  const std::int64_t length = std::max<std::int64_t>(0, first - last);
  const std::int64_t stride = std::max<std::int64_t>(1, -std::max(step, -kMostElements));
  return {first, -stride, length == 0 ? 0 : 1 + (length - 1) / stride};
}

/// The values of a slice of a tensor with one dimension, which is how shapes are taken apart.
void slice_values(NodeContext& node, const Slice& slice) {
  if (!node.input(0).value || node.rank(0) != 1) return;
  std::vector<double> values;
  for (std::int64_t i = 0; i < slice.count; ++i)
    values.push_back(
        (*node.input(0).value)[static_cast<std::size_t>(slice.start + i * slice.step)]);
  node.set_value(0, std::move(values));
}

std::int64_t gathered_axis(const NodeContext& node, std::int64_t index, std::int64_t size) {
  node.require(index >= -size && index < size, "an index is out of range");
  return index < 0 ? index + size : index;
}

}  // namespace

void apply_view(NodeContext& node) {
  node.require(node.has_input(0) && node.has_output(0), "a view of nothing");
  for (std::size_t i = 1; i < node.output_count(); ++i) node.link_aligned(0, i);
  link_view(node);
  node.share_memory();
}

void apply_copy(NodeContext& node) { copy_selected(node); }

void apply_slice(NodeContext& node) {
  const auto starts = node.integers_of_input_or_attribute(1, "starts");
  const auto ends = node.integers_of_input_or_attribute(2, "ends");
  node.require(starts && ends && starts->size() == ends->size(), "missing starts or ends");
  std::vector<std::int64_t> axes, steps(starts->size(), 1);
  if (const auto given = node.integers_of_input_or_attribute(3, "axes"))
    axes = *given;
  else
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (node.has_input(4)) steps = node.known_integers(4);
  node.require(axes.size() == starts->size() && steps.size() == starts->size(),
               "axes or steps of another number than starts");
  Dimensions dims = node.dims(0);
  Slice last;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = node.axis_of(axes[i], dims.size());
    last = slice_of(node, (*starts)[i], (*ends)[i], steps[i], node.dims(0)[axis]);
    dims[axis] = last.count;
  }
  node.set_output(std::move(dims));
  node.link_aligned(0);
  if (axes.size() == 1) slice_values(node, last);
  node.share_memory();
}

void apply_concat(NodeContext& node) {
  Dimensions dims = node.dims(0);
  const std::size_t axis = node.axis_of(node.integer("axis", 0), dims.size());
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    const Dimensions& other = node.dims(i);
    bool fits = other.size() == dims.size();
    for (std::size_t d = 0; fits && d < dims.size(); ++d) fits = d == axis || other[d] == dims[d];
    if (!fits)
      node.fail("inputs of the shapes " + to_text(dims) + " and " + to_text(other) +
                    " cannot be concatenated",
                "check the values of --dim and the shapes of the inputs");
    dims[axis] += other[axis];
    node.require(dims[axis] <= kMostElements, "its output has too many elements");
  }
  node.set_output(dims);
  for (std::size_t i = 0; i < node.input_count(); ++i) node.link_aligned(i);
  if (dims.size() == 1 && dims[0] <= kMostKnownValues && node.values_are_known()) {
    std::vector<double> values;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      values.insert(values.end(), node.input(i).value->begin(), node.input(i).value->end());
    node.set_value(0, std::move(values));
  }
  node.memory_bound();
}

void apply_split(NodeContext& node) {
  const std::size_t axis = node.axis_of(node.integer("axis", 0), node.rank(0));
  const std::int64_t size = node.dims(0)[axis];
  const auto outputs = static_cast<std::int64_t>(node.output_count());
  auto sizes = node.integers_of_input_or_attribute(1, "split");
  if (!sizes) {
    sizes.emplace();
    const std::int64_t part = divide_up(size, std::max<std::int64_t>(1, outputs));
    for (std::int64_t i = 0; i < outputs; ++i)
      sizes->push_back(std::clamp<std::int64_t>(size - i * part, 0, part));
  }
  node.require(static_cast<std::int64_t>(sizes->size()) == outputs,
               "a number of sizes that differs from that of the outputs");
  std::int64_t start = 0;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    Dimensions dims = node.dims(0);
    dims[axis] = (*sizes)[i];
    node.require(dims[axis] >= 0 && dims[axis] <= size - start, "the sizes exceed the dimension");
    node.set_output(i, dims, node.input(0).type);
    node.link_aligned(0, i);
    node.share_memory(i);
    if (node.input(0).value && dims.size() == 1) {
      const auto from = node.input(0).value->begin() + static_cast<std::ptrdiff_t>(start);
      node.set_value(i, {from, from + static_cast<std::ptrdiff_t>(dims[axis])});
    }
    start += dims[axis];
  }
}

void apply_gather(NodeContext& node) {
  node.require(node.rank(0) > 0, "a gather from a scalar");
  const std::size_t axis = node.axis_of(node.integer("axis", 0), node.rank(0));
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Dimensions dims(node.dims(0).begin(), node.dims(0).begin() + at);
  dims.insert(dims.end(), node.dims(1).begin(), node.dims(1).end());
  dims.insert(dims.end(), node.dims(0).begin() + at + 1, node.dims(0).end());
  node.set_output(std::move(dims));
  for (std::size_t d = 0; d < node.rank(0); ++d)
    if (d != axis) node.link(0, d, d < axis ? d : d + node.rank(1) - 1);
  for (std::size_t d = 0; d < node.rank(1); ++d) node.link(1, d, axis + d);
  if (node.input(0).is_parameter()) node.sum_over(0, axis);
  if (node.rank(0) == 1 && node.input(0).value && node.input(1).value) {
    std::vector<double> values;
    for (const std::int64_t index : node.known_integers(1))
      values.push_back((*node.input(0).value)[static_cast<std::size_t>(
          gathered_axis(node, index, node.dims(0)[0]))]);
    node.set_value(0, std::move(values));
  }
  const std::int64_t rows = 2 * node.bytes_of_output(0) + node.bytes_of_input(1);
  // The gradients of the rows of a parameter are added to fp32 sums.
  const std::int64_t sums = node.output_elements(0) * kFloat32Bytes;
  const bool is_parameter = node.input(0).is_parameter();
  node.memory_bound(rows, is_parameter ? node.bytes_of_output(0) + 2 * sums
                                       : node.bytes_of_output(0) + node.bytes_of_input(0));
}

void apply_gather_elements(NodeContext& node) {
  node.set_output(node.dims(1));
  node.memory_bound(2 * node.bytes_of_output(0) + node.bytes_of_input(1),
                    node.bytes_of_output(0) + node.bytes_of_input(0));
}

void apply_gather_nd(NodeContext& node) {
  const auto batch = static_cast<std::size_t>(
      std::clamp<std::int64_t>(node.integer("batch_dims", 0), 0, kMostDimensions));
  node.require(node.rank(1) > 0, "indices without dimensions");
  const std::int64_t depth = node.dims(1).back();
  node.require(depth >= 1 && batch + static_cast<std::size_t>(depth) <= node.rank(0),
               "more indices than dimensions");
  Dimensions dims(node.dims(1).begin(), node.dims(1).end() - 1);
  const auto rest = static_cast<std::ptrdiff_t>(batch + static_cast<std::size_t>(depth));
  dims.insert(dims.end(), node.dims(0).begin() + rest, node.dims(0).end());
  node.set_output(std::move(dims));
  node.memory_bound(2 * node.bytes_of_output(0) + node.bytes_of_input(1),
                    node.bytes_of_output(0) + node.bytes_of_input(0));
}

/// Copies the first input and overwrites the elements of the third.
void apply_scatter(NodeContext& node) {
  node.set_output(node.dims(0));
  const std::int64_t updates = node.bytes_of_input(2);
  const std::int64_t whole = node.bytes_of_input(0);
  node.memory_bound(2 * whole + 2 * updates + node.bytes_of_input(1), 2 * whole + 2 * updates);
}

void apply_expand(NodeContext& node) {
  const Dimensions wanted = node.known_integers(1);
  node.require(wanted.size() <= kMostDimensions, "too many dimensions");
  const auto dims = broadcast(node.dims(0), wanted);
  if (!dims)
    node.fail("a tensor of the shape " + to_text(node.dims(0)) + " cannot be expanded to " +
                  to_text(wanted),
              "check the values of --dim");
  node.set_output(*dims);
  node.link_aligned(0);
  const std::optional<std::vector<double>>& value = node.input(0).value;
  if (value && value->size() == 1 && node.output_elements(0) <= kMostKnownValues)
    node.set_value(
        0, std::vector<double>(static_cast<std::size_t>(node.output_elements(0)), value->front()));
  node.share_memory();
}

void apply_tile(NodeContext& node) {
  const std::vector<std::int64_t> repeats = node.known_integers(1);
  node.require(repeats.size() == node.rank(0), "a number of repeats that differs from the rank");
  Dimensions dims = node.dims(0);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    node.require(repeats[i] >= 0 && repeats[i] <= kMostElements, "repeats out of range");
    node.require(dims[i] == 0 || repeats[i] <= kMostElements / dims[i], "too many elements");
    dims[i] *= repeats[i];
  }
  node.set_output(std::move(dims));
  node.memory_bound();
}

void apply_pad(NodeContext& node) {
  const auto pads = node.integers_of_input_or_attribute(1, "pads");
  node.require(pads.has_value(), "missing pads");
  std::vector<std::int64_t> axes;
  if (node.has_input(3))
    axes = node.known_integers(3);
  else
    for (std::size_t i = 0; i < node.rank(0); ++i) axes.push_back(static_cast<std::int64_t>(i));
  node.require(pads->size() == 2 * axes.size(), "a number of pads that differs from 2 per axis");
  Dimensions dims = node.dims(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t before = (*pads)[i], after = (*pads)[i + axes.size()];
    node.require(std::abs(before) <= kMostElements && std::abs(after) <= kMostElements,
                 "pads out of range");
    dims[node.axis_of(axes[i], dims.size())] += before + after;
  }
  node.set_output(std::move(dims));
  link_equal(node);
  node.memory_bound();
}

namespace {

/// The smallest or largest of the scales to `sizes`, if the aspect ratio is kept; otherwise 0.
double common_scale(const NodeContext& node, const Dimensions& dims,
                    const std::vector<std::size_t>& axes, const std::vector<std::int64_t>& sizes) {
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return 0;
  double result = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double scale = static_cast<double>(sizes[i]) /
                         static_cast<double>(std::max<std::int64_t>(1, dims[axes[i]]));
    node.require(scale > 0 && scale <= static_cast<double>(kMostElements), "sizes out of range");
    const bool is_better = policy == "not_larger" ? scale < result : scale > result;
    if (i == 0 || is_better) result = scale;
  }
  return result;
}

}  // namespace

/// Sizes (input 3), or scales (input 2, or input 1 of Upsample and Resize-10).
void apply_resize(NodeContext& node) {
  Dimensions dims = node.dims(0);
  std::vector<std::size_t> axes;
  if (node.attribute("axes"))
    for (const std::int64_t axis : node.integers("axes"))
      axes.push_back(node.axis_of(axis, dims.size()));
  else
    for (std::size_t i = 0; i < dims.size(); ++i) axes.push_back(i);
  if (node.has_input(3) && node.elements(3) > 0) {
    const std::vector<std::int64_t> sizes = node.known_integers(3);
    node.require(sizes.size() == axes.size(), "a number of sizes that differs from the axes");
    const double scale = common_scale(node, dims, axes, sizes);
    for (std::size_t i = 0; i < axes.size(); ++i)
      dims[axes[i]] =
          scale > 0 ? std::llround(scale * static_cast<double>(dims[axes[i]])) : sizes[i];
  } else {
    const std::vector<double> scales = node.known_values(node.input_count() == 2 ? 1 : 2);
    node.require(scales.size() == axes.size(), "a number of scales that differs from the axes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const double size = std::floor(static_cast<double>(dims[axes[i]]) * scales[i]);
      node.require(size >= 0 && size <= static_cast<double>(kMostElements), "scales out of range");
      dims[axes[i]] = static_cast<std::int64_t>(size);
    }
  }
  node.set_output(std::move(dims));
  link_equal(node);
  node.memory_bound(node.bytes_of_input(0) + node.bytes_of_output(0),
                    node.bytes_of_input(0) + node.bytes_of_output(0));
}

namespace {

/// [N, C, H, W] with blocks of b x b moved from channels to space, or back.
void move_blocks(NodeContext& node, bool to_space) {
  const std::int64_t block = node.integer("blocksize", 0);
  node.require(node.rank(0) == 4 && block >= 1 && block <= 1 << 16, "blocks out of range");
  Dimensions dims = node.dims(0);
  const std::int64_t area = block * block;
  node.require(to_space ? dims[1] % area == 0 : dims[2] % block == 0 && dims[3] % block == 0,
               "the shape is not a multiple of the block size");
  if (to_space)
    dims = {dims[0], dims[1] / area, dims[2] * block, dims[3] * block};
  else
    dims = {dims[0], dims[1] * area, dims[2] / block, dims[3] / block};
  node.set_output(std::move(dims));
  node.memory_bound();
}

}  // namespace

void apply_depth_to_space(NodeContext& node) { move_blocks(node, true); }
void apply_space_to_depth(NodeContext& node) { move_blocks(node, false); }

}  // namespace meshwright::onnx
