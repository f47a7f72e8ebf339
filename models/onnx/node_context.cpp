#include "models/onnx/node_context.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright::onnx {

std::string to_text(const Dimensions& dims) { return fmt::format("[{}]", fmt::join(dims, ", ")); }

Bytes bytes_of(const GraphTensor& tensor, Dtype dtype) {
  const int element = is_floating(tensor.type) ? bytes_per_element(dtype) : bytes_of(tensor.type);
  return Bytes(*element_count(*tensor.dims) * element);
}

std::optional<Dimensions> broadcast(const Dimensions& a, const Dimensions& b) {
  Dimensions out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

NodeContext::NodeContext(const Node& node, const std::string& name, const GraphSettings& settings,
                         const OperatorRule& rule, std::vector<GraphTensor>& tensors,
                         std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                         GraphBudget& budget)
    : node_(node),
      settings_(settings),
      rule_(rule),
      tensors_(tensors),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      budget_(budget) {
  work_.name = name;
  work_.operation = node.operation;
  for (std::size_t i = 0; i < inputs_.size(); ++i) spend_bytes(bytes_of_input(i));
}

void NodeContext::spend_bytes(std::int64_t bytes) {
  budget_.bytes -= static_cast<double>(bytes);
  if (budget_.bytes < 0)
    fail("the tensors of the graph have too many bytes", "use smaller dimensions");
}

void NodeContext::fail(const std::string& what, const std::string& hint) const {
  throw InputError({fmt::format("{}: node '{}' ({})", settings_.where, printable_text(work_.name),
                                printable_text(node_.operation)),
                    what, hint});
}

void NodeContext::require(bool condition, const char* what) const {
  if (!condition) fail(what, "check the model, for instance with onnx.checker");
}

// ---- inputs and attributes ------------------------------------------------------------------

const GraphTensor& NodeContext::input(std::size_t i) const {
  if (!has_input(i))
    fail(fmt::format("missing input {}", i), "check the model, for instance with onnx.checker");
  return tensors_[static_cast<std::size_t>(inputs_[i])];
}

std::int64_t NodeContext::elements(std::size_t i) const { return *element_count(dims(i)); }

std::vector<double> NodeContext::known_values(std::size_t i) const {
  const GraphTensor& tensor = input(i);
  if (!tensor.value)
    fail(fmt::format("the shape depends on the data of '{}'", printable_text(tensor.name)),
         "export the model with fixed shapes, or with shapes of all intermediate tensors");
  return *tensor.value;
}

std::vector<std::int64_t> NodeContext::known_integers(std::size_t i) const {
  constexpr double kLargest = 9e18;
  std::vector<std::int64_t> integers;
  for (const double value : known_values(i)) {
    require(!std::isnan(value), "a shape is not a number");
    integers.push_back(std::llround(std::clamp(value, -kLargest, kLargest)));
  }
  return integers;
}

const Attribute* NodeContext::attribute(std::string_view name) const {
  const auto found = std::ranges::find(node_.attributes, name, &Attribute::name);
  return found == node_.attributes.end() ? nullptr : &*found;
}

std::int64_t NodeContext::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* found = attribute(name);
  return found ? found->integer : otherwise;
}

std::vector<std::int64_t> NodeContext::integers(std::string_view name) const {
  const Attribute* found = attribute(name);
  return found ? found->integers : std::vector<std::int64_t>();
}

std::string NodeContext::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = attribute(name);
  return found ? found->text : std::string(otherwise);
}

std::optional<std::vector<std::int64_t>> NodeContext::integers_of_input_or_attribute(
    std::size_t i, std::string_view name) const {
  if (has_input(i)) return known_integers(i);
  if (attribute(name)) return integers(name);
  return std::nullopt;
}

std::size_t NodeContext::axis_of(std::int64_t axis, std::size_t rank) const {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis < -size || axis >= size)
    fail(fmt::format("axis {} of a tensor with {} dimensions", axis, rank),
         "check the model, for instance with onnx.checker");
  return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
}

// ---- outputs --------------------------------------------------------------------------------

void NodeContext::set_output(std::size_t i, Dimensions dims, ElementType type) {
  if (!has_output(i)) return;
  if (dims.size() > kMostDimensions || !element_count(dims))
    fail(fmt::format("its output has the shape {}", to_text(dims)),
         fmt::format("use at most {} dimensions and 2^40 elements", kMostDimensions));
  GraphTensor& tensor = tensors_[static_cast<std::size_t>(outputs_[i])];
  tensor.dims = std::move(dims);
  tensor.type = type;
  spend_bytes(bytes_of_output(i));
}

const Dimensions& NodeContext::output_dims(std::size_t i) const {
  MW_CHECK(has_output(i));
  const GraphTensor& tensor = tensors_[static_cast<std::size_t>(outputs_[i])];
  MW_CHECK(tensor.dims.has_value());
  return *tensor.dims;
}

std::int64_t NodeContext::output_elements(std::size_t i) const {
  return *element_count(output_dims(i));
}

void NodeContext::set_value(std::size_t i, std::vector<double> values) {
  if (!has_output(i)) return;
  const auto count = static_cast<std::int64_t>(values.size());
  MW_CHECK(count == output_elements(i));
  if (count > kMostKnownValues || count > budget_.values) return;
  budget_.values -= count;
  tensors_[static_cast<std::size_t>(outputs_[i])].value = std::move(values);
}

bool NodeContext::values_are_known() const {
  return std::ranges::all_of(inputs_, [&](std::int32_t tensor) {
    return tensor < 0 || tensors_[static_cast<std::size_t>(tensor)].value.has_value();
  });
}

GraphTensor& NodeContext::tensor(std::int32_t index) const {
  return tensors_[static_cast<std::size_t>(index)];
}

void NodeContext::share_memory(std::size_t i) {
  if (!has_output(i)) return;
  tensor(outputs_[i]).view_of = inputs_[0];
  tensor(outputs_[i]).is_transposed = input(0).is_transposed;
}

void NodeContext::share_memory_transposed() {
  share_memory();
  if (has_output(0)) tensor(outputs_[0]).is_transposed = true;
}

void NodeContext::exclude_parameter(std::size_t i) {
  if (!has_input(i)) return;
  GraphTensor& tensor = tensors_[static_cast<std::size_t>(inputs_[i])];
  if (!tensor.is_parameter()) return;
  tensor.parameters.clear();
  tensor.needs_gradient = false;
  tensor.is_constant = true;
}

// ---- dimensions that are the same -----------------------------------------------------------

/// Dimensions that a tensor does not have count as one element.
TensorDimension NodeContext::dimension(std::int32_t index, std::size_t dim) const {
  const Dimensions& dims = *tensor(index).dims;
  return {.tensor = index,
          .dim = static_cast<std::int32_t>(dim),
          .size = dim < dims.size() ? dims[dim] : 1};
}

void NodeContext::link(const TensorDimension& a, const TensorDimension& b) {
  if (settings_.links_dimensions && a.size > 1 && b.size > 1) links_.pairs.push_back({a, b});
}

void NodeContext::link(std::size_t i, std::size_t dim, std::size_t output_dim, std::size_t output) {
  if (has_input(i) && has_output(output))
    link(dimension(inputs_[i], dim), dimension(outputs_[output], output_dim));
}

void NodeContext::link_inputs(std::size_t i, std::size_t dim, std::size_t j,
                              std::size_t other_dim) {
  if (has_input(i) && has_input(j))
    link(dimension(inputs_[i], dim), dimension(inputs_[j], other_dim));
}

void NodeContext::link_aligned(std::size_t i, std::size_t output) {
  if (!has_input(i) || !has_output(output)) return;
  const std::size_t in = rank(i), out = output_dims(output).size();
  for (std::size_t back = 1; back <= std::min(in, out); ++back)
    link(i, in - back, out - back, output);
}

void NodeContext::link_leading(std::size_t count) {
  for (std::size_t dim = 0; dim < count; ++dim) link(0, dim, dim);
}

/// Several dimensions become one, or the other way round.
void NodeContext::link_reshaped() {
  if (!has_output(0) || elements(0) == 0) return;
  const Dimensions &in = dims(0), &out = output_dims(0);
  const auto link_factors = [&](std::size_t first, std::size_t end, std::int32_t many,
                                TensorDimension one) {
    one.stride = 1;
    for (std::size_t d = end; d-- > first;) {
      const TensorDimension factor = dimension(many, d);
      one.size = factor.size;
      link(factor, one);
      one.stride *= factor.size;
    }
  };
  for (std::size_t a = 0, b = 0; a < in.size() && b < out.size();) {
    const std::size_t first_a = a, first_b = b;
    std::int64_t size_a = in[a++], size_b = out[b++];
    while (size_a != size_b)
      (size_a < size_b ? size_a : size_b) *= size_a < size_b ? in[a++] : out[b++];
    const auto wide = [](const Dimensions& sizes, std::size_t first, std::size_t end) {
      std::vector<std::size_t> found;
      for (std::size_t d = first; d < end; ++d)
        if (sizes[d] > 1) found.push_back(d);
      return found;
    };
    const std::vector<std::size_t> from = wide(in, first_a, a), to = wide(out, first_b, b);
    if (to.size() == 1)
      link_factors(first_a, a, inputs_[0], dimension(outputs_[0], to[0]));
    else if (from.size() == 1)
      link_factors(first_b, b, outputs_[0], dimension(inputs_[0], from[0]));
  }
}

void NodeContext::sum_over(std::size_t i, std::size_t dim) {
  if (settings_.links_dimensions && has_input(i))
    links_.summed.push_back(dimension(inputs_[i], dim));
}

void NodeContext::limit_parts(std::size_t i, std::size_t dim, std::int64_t parts) {
  if (settings_.links_dimensions && has_input(i))
    links_.limits.push_back({dimension(inputs_[i], dim), parts});
}

void NodeContext::sum_statistics(std::size_t i, std::size_t dim, std::int64_t bytes) {
  if (settings_.links_dimensions && has_input(i))
    links_.statistics.push_back({dimension(inputs_[i], dim), Bytes(bytes)});
}

// ---- work -----------------------------------------------------------------------------------

std::int64_t NodeContext::element_bytes() const { return bytes_per_element(settings_.dtype); }

std::int64_t NodeContext::bytes_of_input(std::size_t i) const {
  return has_input(i) ? bytes_of(input(i), settings_.dtype).value : 0;
}

/// Outputs without a known shape are not read by other nodes.
std::int64_t NodeContext::bytes_of_output(std::size_t i) const {
  if (!has_output(i)) return 0;
  const GraphTensor& tensor = tensors_[static_cast<std::size_t>(outputs_[i])];
  return tensor.dims ? bytes_of(tensor, settings_.dtype).value : 0;
}

bool NodeContext::any_needs_gradient() const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (needs_gradient(i)) return true;
  return false;
}

void NodeContext::save_input(std::size_t i) {
  if (has_input(i) && !is_integer(input(i).type)) saved_.push_back(inputs_[i]);
}

void NodeContext::save_output(std::size_t i) {
  if (has_output(i)) saved_.push_back(outputs_[i]);
}

void NodeContext::bias_gradient(std::size_t i) {
  if (!settings_.is_training || !needs_gradient(i)) return;
  Kernel made = kernel(KernelKind::kMemoryBound, Phase::kBackwardWeight);
  made.routine = Routine::kBias;
  made.memory_traffic = Bytes(bytes_of_output(0));
  add_backward(made);
}

/// The gradient of another input is a product with input `i`.
bool NodeContext::is_factor(std::size_t i) const {
  for (std::size_t other = 0; other < inputs_.size(); ++other)
    if (other != i && needs_gradient(other)) return true;
  return false;
}

Kernel NodeContext::kernel(KernelKind kind, Phase phase) const {
  Kernel made;
  made.kind = kind;
  made.phase = phase;
  made.routine = rule_.routine;
  made.dtype = settings_.dtype;
  return made;
}

void NodeContext::memory_bound(std::int64_t forward, std::int64_t backward) {
  Kernel made = kernel(KernelKind::kMemoryBound, Phase::kForward);
  made.memory_traffic = Bytes(forward);
  add_forward(made);
  if (!settings_.is_training || !any_needs_gradient()) return;
  made.phase = Phase::kBackwardInput;
  made.memory_traffic = Bytes(backward);
  add_backward(made);
}

void NodeContext::memory_bound() {
  std::int64_t in = 0, out = 0, input_gradients = 0, saved = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    in += bytes_of_input(i);
    if (needs_gradient(i)) input_gradients += bytes_of_input(i);
    const bool is_saved = rule_.saves == Saves::kInputs
                              ? any_needs_gradient()
                              : rule_.saves == Saves::kFactors && is_factor(i);
    if (is_saved) {
      saved += bytes_of_input(i);
      save_input(i);
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) out += bytes_of_output(i);
  if (rule_.saves == Saves::kOutput && any_needs_gradient()) {
    saved += bytes_of_output(0);
    save_output(0);
  }
  memory_bound(in + out, out + saved + input_gradients);
}

/// Cost models multiply two of the three sizes.
void NodeContext::check_product(const ProductSize& size) const {
  constexpr double kMost = 0x1p60;
  const double batch = static_cast<double>(size.batch), m = static_cast<double>(size.m),
               n = static_cast<double>(size.n), k = static_cast<double>(size.k);
  if (batch * std::max({m * n, m * k, n * k}) > kMost)
    fail(fmt::format("product of {} x ([{}, {}] x [{}, {}])", size.batch, size.m, size.k, size.k,
                     size.n),
         "use smaller dimensions");
}

Flops NodeContext::product_flops(const ProductSize& size) const {
  return Flops(2.0 * static_cast<double>(size.batch) * static_cast<double>(size.m) *
               static_cast<double>(size.n) * static_cast<double>(size.k));
}

Kernel NodeContext::product_kernel(const ProductSize& size, Phase phase, std::int64_t bytes) const {
  Kernel made = kernel(size.is_grouped ? KernelKind::kGroupedGemm : KernelKind::kGemm, phase);
  made.routine = Routine::kProduct;
  made.batch = size.batch;
  made.m = size.m;
  made.n = size.n;
  made.k = size.k;
  made.flops = product_flops(size);
  made.memory_traffic = Bytes(bytes);
  return made;
}

void NodeContext::product(const ProductSize& size, std::size_t a, std::size_t b) {
  product(size, {bytes_of_input(a), bytes_of_input(b), bytes_of_output(0)}, a, b);
}

void NodeContext::product(const ProductSize& size, const ProductBytes& bytes, std::size_t a,
                          std::size_t b) {
  check_product(size);
  if (size.batch == 0 || size.m == 0 || size.n == 0 || size.k == 0) return;
  const std::int64_t total = bytes.a + bytes.b + bytes.result;
  add_forward(product_kernel(size, Phase::kForward, total));
  if (!settings_.is_training) return;
  // Gradients of parameters are added to fp32 sums: read and written.
  const auto gradient = [&](std::size_t i, std::int64_t operand) {
    return input(i).is_parameter() ? 2 * operand / element_bytes() * kFloat32Bytes : operand;
  };
  const auto phase = [&](std::size_t i) {
    return input(i).is_parameter() ? Phase::kBackwardWeight : Phase::kBackwardInput;
  };
  if (needs_gradient(a)) {
    save_input(b);
    add_backward(product_kernel({size.batch, size.m, size.k, size.n, size.is_grouped}, phase(a),
                                total - bytes.a + gradient(a, bytes.a)));
  }
  if (needs_gradient(b)) {
    save_input(a);
    add_backward(product_kernel({size.batch, size.k, size.n, size.m, size.is_grouped}, phase(b),
                                total - bytes.b + gradient(b, bytes.b)));
  }
}

}  // namespace meshwright::onnx
