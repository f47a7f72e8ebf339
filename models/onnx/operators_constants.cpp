#include <algorithm>
#include <cmath>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

std::vector<double> as_values(const std::vector<std::int64_t>& integers) {
  return {integers.begin(), integers.end()};
}

void set_vector(NodeContext& node, std::vector<double> values, ElementType type) {
  node.set_output(0, {static_cast<std::int64_t>(values.size())}, type);
  node.set_value(0, std::move(values));
}

}  // namespace

void apply_constant(NodeContext& node) {
  if (const Attribute* given = node.attribute("value"); given && given->tensor) {
    node.set_output(0, given->tensor->dims, given->tensor->type);
    if (given->tensor->value) node.set_value(0, *given->tensor->value);
  } else if (const Attribute* integer = node.attribute("value_int")) {
    node.set_output(0, {}, ElementType::kInt64);
    node.set_value(0, {static_cast<double>(integer->integer)});
  } else if (const Attribute* real = node.attribute("value_float")) {
    node.set_output(0, {}, ElementType::kFloat);
    node.set_value(0, {static_cast<double>(real->real)});
  } else if (const Attribute* list = node.attribute("value_ints")) {
    set_vector(node, as_values(list->integers), ElementType::kInt64);
  } else if (const Attribute* reals = node.attribute("value_floats")) {
    set_vector(node, {reals->reals.begin(), reals->reals.end()}, ElementType::kFloat);
  } else {
    node.fail("a constant without a numeric value", "remove the nodes that compute text");
  }
}

void apply_constant_of_shape(NodeContext& node) {
  const Attribute* given = node.attribute("value");
  const bool has_value = given && given->tensor;
  Dimensions dims = node.known_integers(0);
  node.set_output(0, dims, has_value ? given->tensor->type : ElementType::kFloat);
  const std::int64_t count = node.output_elements(0);
  const bool is_known = !has_value || (given->tensor->value && !given->tensor->value->empty());
  if (count <= kMostKnownValues && is_known)
    node.set_value(0, std::vector<double>(static_cast<std::size_t>(count),
                                          has_value ? given->tensor->value->front() : 0.0));
  node.memory_bound(node.bytes_of_output(0), 0);
}

void apply_shape(NodeContext& node) {
  const auto rank = static_cast<std::int64_t>(node.rank(0));
  const auto bound = [&](const char* name, std::int64_t otherwise) {
    const std::int64_t at = node.integer(name, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const std::int64_t start = bound("start", 0), end = bound("end", rank);
  std::vector<double> values;
  for (std::int64_t axis = start; axis < end; ++axis)
    values.push_back(static_cast<double>(node.dims(0)[static_cast<std::size_t>(axis)]));
  set_vector(node, std::move(values), ElementType::kInt64);
}

void apply_size(NodeContext& node) {
  node.set_output(0, {}, ElementType::kInt64);
  node.set_value(0, {static_cast<double>(node.elements(0))});
}

void apply_range(NodeContext& node) {
  double bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<double> values = node.known_values(i);
    node.require(values.size() == 1, "an input of Range is not a scalar");
    bounds[i] = values.front();
  }
  const double steps = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  node.require(bounds[2] != 0 && steps <= static_cast<double>(kMostElements),
               "Range has a step of 0, or too many elements");
  const auto count = static_cast<std::int64_t>(std::max(0.0, steps));
  node.set_output(0, {count}, node.input(0).type);
  if (count <= kMostKnownValues) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(bounds[0] + static_cast<double>(i) * bounds[2]);
    node.set_value(0, std::move(values));
  }
  node.memory_bound(node.bytes_of_output(0), 0);
}

void apply_one_hot(NodeContext& node) {
  const std::vector<std::int64_t> depth = node.known_integers(1);
  node.require(depth.size() == 1, "the depth of OneHot is not a scalar");
  Dimensions dims = node.dims(0);
  const std::size_t axis = node.axis_of(node.integer("axis", -1), dims.size() + 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), depth.front());
  node.set_output(0, std::move(dims), node.input(2).type);
  node.memory_bound();
}

void apply_random(NodeContext& node) {
  node.set_output(0, node.integers("shape"), static_cast<ElementType>(node.integer("dtype", 1)));
  node.memory_bound(node.bytes_of_output(0), 0);
}

void apply_like_input(NodeContext& node) {
  node.set_output(node.dims(0));
  node.memory_bound();
}

}  // namespace meshwright::onnx
