#include <algorithm>
#include <array>
#include <cmath>

#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

Dimensions broadcast_inputs(const NodeContext& node) {
  Dimensions dims = node.dims(0);
  for (std::size_t i = 1; i < node.input_count(); ++i) {
    if (!node.has_input(i)) continue;
    const auto wider = broadcast(dims, node.dims(i));
    if (!wider)
      node.fail("inputs of the shapes " + to_text(dims) + " and " + to_text(node.dims(i)) +
                    " cannot be broadcast",
                "check the values of --dim and the shapes of the inputs");
    dims = *wider;
  }
  return dims;
}

double divide(double a, double b, bool is_whole) {
  if (b == 0) return 0;
  return is_whole ? std::trunc(a / b) : a / b;
}
double floor_modulo(double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); }

using Arguments = std::array<double, 3>;
struct Fold {
  std::string_view name;
  double (*apply)(const Arguments&, bool is_whole);
};
/// The operators that exporters compute shapes, positions and conditions with.
constexpr Fold kFolds[] = {
    {"Add", [](const Arguments& x, bool) { return x[0] + x[1]; }},
    {"Sub", [](const Arguments& x, bool) { return x[0] - x[1]; }},
    {"Mul", [](const Arguments& x, bool) { return x[0] * x[1]; }},
    {"Div", [](const Arguments& x, bool is_whole) { return divide(x[0], x[1], is_whole); }},
    {"Mod", [](const Arguments& x, bool) { return floor_modulo(x[0], x[1]); }},
    {"Pow", [](const Arguments& x, bool) { return std::pow(x[0], x[1]); }},
    {"Max", [](const Arguments& x, bool) { return std::max(x[0], x[1]); }},
    {"Min", [](const Arguments& x, bool) { return std::min(x[0], x[1]); }},
    {"Neg", [](const Arguments& x, bool) { return -x[0]; }},
    {"Abs", [](const Arguments& x, bool) { return std::abs(x[0]); }},
    {"Floor", [](const Arguments& x, bool) { return std::floor(x[0]); }},
    {"Ceil", [](const Arguments& x, bool) { return std::ceil(x[0]); }},
    {"Round", [](const Arguments& x, bool) { return std::nearbyint(x[0]); }},
    {"Sqrt", [](const Arguments& x, bool) { return std::sqrt(x[0]); }},
    {"Equal", [](const Arguments& x, bool) { return x[0] == x[1] ? 1.0 : 0.0; }},
    {"Less", [](const Arguments& x, bool) { return x[0] < x[1] ? 1.0 : 0.0; }},
    {"LessOrEqual", [](const Arguments& x, bool) { return x[0] <= x[1] ? 1.0 : 0.0; }},
    {"Greater", [](const Arguments& x, bool) { return x[0] > x[1] ? 1.0 : 0.0; }},
    {"GreaterOrEqual", [](const Arguments& x, bool) { return x[0] >= x[1] ? 1.0 : 0.0; }},
    {"And", [](const Arguments& x, bool) { return x[0] != 0 && x[1] != 0 ? 1.0 : 0.0; }},
    {"Or", [](const Arguments& x, bool) { return x[0] != 0 || x[1] != 0 ? 1.0 : 0.0; }},
    {"Not", [](const Arguments& x, bool) { return x[0] == 0 ? 1.0 : 0.0; }},
    {"Where", [](const Arguments& x, bool) { return x[0] != 0 ? x[1] : x[2]; }},
};

/// Offset in an input of the element of the result at `position`.
std::size_t broadcast_offset(const Dimensions& dims, const Dimensions& result,
                             std::int64_t position) {
  std::int64_t offset = 0, stride = 1;
  for (std::size_t back = 1; back <= result.size(); ++back) {
    const std::int64_t size = result[result.size() - back];
    const std::int64_t at = position % size;
    position /= size;
    if (back > dims.size()) continue;
    const std::int64_t own = dims[dims.size() - back];
    if (own != 1) offset += at * stride;
    stride *= own;
  }
  return static_cast<std::size_t>(offset);
}

void apply_broadcast(NodeContext& node, ElementType type) {
  const Dimensions dims = broadcast_inputs(node);
  node.set_output(0, dims, type);
  if (auto values = fold_elementwise(node, dims)) node.set_value(0, std::move(*values));
  for (std::size_t i = 0; i < node.input_count(); ++i) node.link_aligned(i);
  node.memory_bound();
}

}  // namespace

std::optional<std::vector<double>> fold_elementwise(const NodeContext& node,
                                                    const Dimensions& result) {
  const auto fold = std::ranges::find(kFolds, node.node().operation, &Fold::name);
  const std::int64_t count = element_count(result).value_or(kMostKnownValues + 1);
  const bool fits = node.input_count() <= Arguments().size() && count <= kMostKnownValues;
  if (fold == std::end(kFolds) || !fits || !node.values_are_known()) return std::nullopt;
  const bool is_whole = is_integer(node.input(0).type);
  std::vector<double> values;
  for (std::int64_t position = 0; position < count; ++position) {
    Arguments arguments{};
    for (std::size_t i = 0; i < node.input_count(); ++i)
      arguments[i] = (*node.input(i).value)[broadcast_offset(node.dims(i), result, position)];
    values.push_back(fold->apply(arguments, is_whole));
  }
  return values;
}

void apply_elementwise(NodeContext& node) { apply_broadcast(node, node.input(0).type); }
void apply_comparison(NodeContext& node) { apply_broadcast(node, ElementType::kBool); }
void apply_where(NodeContext& node) { apply_broadcast(node, node.input(1).type); }

/// Floating-point tensors have one dtype here, so that conversions between them cost nothing.
void apply_cast(NodeContext& node) {
  const bool is_like = node.node().operation == "CastLike";
  const auto type = is_like ? node.input(1).type : static_cast<ElementType>(node.integer("to", 1));
  node.set_output(0, node.dims(0), type);
  node.link_aligned(0);
  if (node.input(0).value) {
    std::vector<double> values = *node.input(0).value;
    if (is_integer(type))
      for (double& value : values) value = std::trunc(value);
    if (type == ElementType::kBool)
      for (double& value : values) value = value != 0 ? 1 : 0;
    node.set_value(0, std::move(values));
  }
  if (node.input(0).type == type || (is_floating(type) && is_floating(node.input(0).type)))
    return node.share_memory();
  node.memory_bound();
}

/// To the type of the zero point, or uint8.
void apply_quantize(NodeContext& node) {
  node.set_output(0, node.dims(0), node.has_input(2) ? node.input(2).type : ElementType::kUint8);
  node.memory_bound();
}

void apply_dequantize(NodeContext& node) {
  node.set_output(0, node.dims(0), node.input(1).type);
  node.memory_bound();
}

void apply_identity(NodeContext& node) {
  node.set_output(node.dims(0));
  node.link_aligned(0);
  if (node.input(0).value) node.set_value(0, *node.input(0).value);
  node.share_memory();
}

/// Without `training_mode` it does nothing; with it, a mask of one byte per element is saved.
void apply_dropout(NodeContext& node) {
  node.set_output(node.dims(0));
  node.set_output(1, node.dims(0), ElementType::kBool);
  node.link_aligned(0);
  node.link_aligned(0, 1);
  const bool drops = node.has_input(2) && node.input(2).value && !node.input(2).value->empty() &&
                     node.input(2).value->front() != 0;
  if (!drops) return node.share_memory();
  const std::int64_t mask = node.elements(0), bytes = node.bytes_of_input(0);
  node.save(mask);
  node.memory_bound(2 * bytes + mask, 2 * bytes + mask);
}

}  // namespace meshwright::onnx
