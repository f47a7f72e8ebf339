#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/base/error.hpp"
#include "models/onnx/causal_masks.hpp"
#include "models/onnx/fuse_kernels.hpp"
#include "models/onnx/kernel_graph_reader.hpp"
#include "models/onnx/kernel_units.hpp"
#include "models/onnx/node_order.hpp"
#include "models/onnx/operators.hpp"
#include "models/text/printable_text.hpp"

namespace meshwright {
namespace onnx {
namespace {

/// Parameters of a tensor that is put together from more of them are not followed.
constexpr std::size_t kMostJoinedParameters = 64;

/// More than weights, gradients and optimizer state take per parameter.
constexpr double kStateBytes = 32;

std::vector<std::int32_t> without_repeats(std::vector<std::int32_t> indices) {
  std::ranges::sort(indices);
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

std::string name_of_dimension(const DeclaredTensor& input, std::size_t axis) {
  const DeclaredDimension& declared = (*input.dims)[axis];
  return declared.name.empty() ? fmt::format("{}:{}", input.name, axis) : declared.name;
}

class KernelGraphReader {
 public:
  KernelGraphReader(const Graph& graph, const std::string& where, const OnnxOptions& options);
  KernelsAndTensors read();

 private:
  [[noreturn]] void fail(std::size_t node, const std::string& what, const std::string& hint) const;
  std::int32_t tensor_named(const std::string& name);
  std::int32_t add_tensor();
  void declare_inputs();
  void declare_initializers();
  void declare_intermediates();
  std::int64_t dimension(const DeclaredTensor& input, std::size_t axis);
  void name_nodes();
  void connect();
  void visit(std::size_t node);
  const OperatorRule& rule_of(std::size_t node) const;
  void use_declared_shapes(std::size_t node);
  bool depends_on_data(const std::vector<std::int32_t>& inputs) const;
  bool join_parameters(std::size_t node);
  bool reads_parameters(std::size_t node) const;
  bool is_constant(std::size_t node) const;
  void set_constant(std::size_t node);
  void add_work(std::size_t node, const NodeContext& context);
  std::vector<KernelUnit> fuse();
  void add_saved_tensors();
  void add_edges();

  const Graph& graph_;
  const OnnxOptions& options_;
  GraphSettings settings_;
  GraphBudget budget_;
  std::vector<GraphTensor> tensors_;
  std::unordered_map<std::string, std::int32_t> index_;
  std::unordered_map<std::string, const DeclaredTensor*> declared_;
  std::vector<std::string> missing_dimensions_;
  std::vector<std::string> names_;                           ///< of nodes
  std::vector<std::vector<std::int32_t>> inputs_, outputs_;  ///< tensors by node; -1: omitted
  std::vector<std::int32_t> owner_;   ///< by tensor: first node of the result that reads it; -1
  std::vector<std::int32_t> result_;  ///< by node: its index in the result; -1: left out
  std::vector<KernelNode> result_nodes_;
  std::vector<KernelGraphEdge> edges_;
};

KernelGraphReader::KernelGraphReader(const Graph& graph, const std::string& where,
                                     const OnnxOptions& options)
    : graph_(graph), options_(options) {
  settings_.where = where;
  settings_.dtype = options.dtype;
  settings_.is_training = options.is_training;
  settings_.links_dimensions = options.is_training && graph.nodes.size() <= kMostShardedNodes;
  if (const auto found = graph.opsets.find(""); found != graph.opsets.end())
    settings_.opset = found->second;
}

void KernelGraphReader::fail(std::size_t node, const std::string& what,
                             const std::string& hint) const {
  throw InputError({fmt::format("{}: node '{}' ({})", settings_.where, printable_text(names_[node]),
                                printable_text(graph_.nodes[node].operation)),
                    what, hint});
}

// ---- tensors --------------------------------------------------------------------------------

std::int32_t KernelGraphReader::tensor_named(const std::string& name) {
  const auto [known, is_new] = index_.emplace(name, static_cast<std::int32_t>(tensors_.size()));
  if (is_new) tensors_[static_cast<std::size_t>(add_tensor())].name = name;
  return known->second;
}

/// Without a name: an output that nothing can read.
std::int32_t KernelGraphReader::add_tensor() {
  const auto index = static_cast<std::int32_t>(tensors_.size());
  tensors_.emplace_back();
  return index;
}

/// Trainable are floating-point tensors that are neither scalars nor masks; operators exclude more,
/// such as running means.
void KernelGraphReader::declare_initializers() {
  StoredMasks masks(options_.directory);
  for (const TensorLiteral& literal : graph_.initializers) {
    const std::int32_t index = tensor_named(literal.name);
    GraphTensor& tensor = tensors_[static_cast<std::size_t>(index)];
    if (tensor.dims)
      throw InputError(
          {settings_.where,
           fmt::format("two initializers with the name '{}'", printable_text(literal.name)),
           "give every tensor a name of its own"});
    tensor.type = literal.type;
    tensor.dims = literal.dims;
    tensor.value = literal.value;
    tensor.is_triangular = masks.is_causal(literal);
    const bool is_trainable =
        is_floating(literal.type) && !literal.dims.empty() && !tensor.is_triangular;
    tensor.is_constant = !is_trainable;
    tensor.needs_gradient = is_trainable && settings_.is_training;
    if (is_trainable) tensor.parameters.push_back(index);
  }
}

std::int64_t KernelGraphReader::dimension(const DeclaredTensor& input, std::size_t axis) {
  const DeclaredDimension& declared = (*input.dims)[axis];
  if (declared.value) return *declared.value;
  const std::string name = name_of_dimension(input, axis);
  const auto given = options_.dimensions.find(name);
  if (given != options_.dimensions.end()) return given->second;
  const std::string shown = printable_text(name);
  if (std::ranges::find(missing_dimensions_, shown) == missing_dimensions_.end() &&
      missing_dimensions_.size() < kProblemsWorthShowing)
    missing_dimensions_.push_back(shown);
  return 1;
}

/// Inputs of older files include the initializers.
void KernelGraphReader::declare_inputs() {
  for (const DeclaredTensor& input : graph_.inputs) {
    GraphTensor& tensor = tensors_[static_cast<std::size_t>(tensor_named(input.name))];
    if (tensor.dims) continue;
    const std::string where =
        fmt::format("{}: input '{}'", settings_.where, printable_text(input.name));
    if (!input.dims)
      throw InputError({where, "missing shape, or not a tensor",
                        "export the model with tensors of known rank as inputs"});
    Dimensions dims;
    for (std::size_t axis = 0; axis < input.dims->size(); ++axis)
      dims.push_back(dimension(input, axis));
    if (!element_count(dims))
      throw InputError(
          {where, fmt::format("its shape is {}", to_text(dims)), "use at most 2^40 elements"});
    tensor.type = input.type;
    tensor.dims = std::move(dims);
  }
  std::vector<Diagnostic> problems;
  for (const std::string& name : missing_dimensions_)
    problems.push_back({settings_.where, fmt::format("dimension '{}' has no value", name),
                        fmt::format("set it, such as with --dim {}=8", name)});
  throw_if_any(problems);
}

void KernelGraphReader::declare_intermediates() {
  for (const DeclaredTensor& declared : graph_.intermediates) declared_[declared.name] = &declared;
  for (const DeclaredTensor& declared : graph_.outputs) declared_.emplace(declared.name, &declared);
}

// ---- nodes ----------------------------------------------------------------------------------

void KernelGraphReader::name_nodes() {
  std::unordered_map<std::string_view, std::size_t> seen;
  for (const Node& node : graph_.nodes) {
    std::string name = node.name;
    for (std::size_t i = 0; name.empty() && i < node.outputs.size(); ++i) name = node.outputs[i];
    names_.push_back(std::move(name));
  }
  for (std::size_t v = 0; v < names_.size(); ++v) {
    if (names_[v].empty()) fail(v, "a node without name and outputs", "give every node a name");
    const auto [first, is_new] = seen.emplace(names_[v], v);
    if (!is_new)
      fail(v, fmt::format("nodes {} and {} have the same name", first->second, v),
           "give every node a name of its own");
  }
}

void KernelGraphReader::connect() {
  inputs_.resize(graph_.nodes.size());
  outputs_.resize(graph_.nodes.size());
  for (std::size_t v = 0; v < graph_.nodes.size(); ++v) {
    for (const std::string& name : graph_.nodes[v].outputs) {
      outputs_[v].push_back(name.empty() ? -1 : tensor_named(name));
      if (name.empty()) continue;
      GraphTensor& tensor = tensors_[static_cast<std::size_t>(outputs_[v].back())];
      if (tensor.producer >= 0 || tensor.dims)
        fail(v,
             fmt::format("its output '{}' is also an input, an initializer or an output of another "
                         "node",
                         printable_text(name)),
             "give every tensor a name of its own");
      tensor.producer = static_cast<std::int32_t>(v);
    }
    if (outputs_[v].empty()) fail(v, "a node without outputs", "remove it");
    if (outputs_[v][0] < 0) outputs_[v][0] = add_tensor();
  }
  for (std::size_t v = 0; v < graph_.nodes.size(); ++v)
    for (const std::string& name : graph_.nodes[v].inputs) {
      const auto found = index_.find(name);
      if (!name.empty() && found == index_.end())
        fail(v, fmt::format("its input '{}' does not exist", printable_text(name)),
             "check the model, for instance with onnx.checker");
      inputs_[v].push_back(name.empty() ? -1 : found->second);
    }
}

const OperatorRule& KernelGraphReader::rule_of(std::size_t v) const {
  const Node& node = graph_.nodes[v];
  if (const OperatorRule* rule = find_rule(node)) return *rule;
  if (std::ranges::any_of(node.attributes, &Attribute::has_graph))
    fail(v, "control flow is not supported",
         "export the model without loops and branches, with fixed sizes");
  if (std::ranges::find(graph_.functions, node.operation) != graph_.functions.end())
    fail(v, "it calls a function of the file", "inline functions, for instance with onnx.inliner");
  if (options_.allows_unknown_operators) return memory_bound_rule();
  const std::vector<std::string> near = nearest_names(node.operation, operator_names(), 1);
  const bool is_standard = node.domain.empty();
  fail(
      v,
      is_standard ? "unknown operator"
                  : fmt::format("unknown operator of the domain '{}'", printable_text(node.domain)),
      fmt::format("{}use --unknown-operators memory-bound to price it by the bytes that it reads "
                  "and writes",
                  near.empty() || !is_standard ? "" : fmt::format("did you mean '{}'? ", near[0])));
}

/// Shapes that the operator's rule did not set are those that the file declares.
void KernelGraphReader::use_declared_shapes(std::size_t v) {
  for (const std::int32_t output : outputs_[v]) {
    if (output < 0) continue;
    GraphTensor& tensor = tensors_[static_cast<std::size_t>(output)];
    const auto found = declared_.find(tensor.name);
    if (tensor.dims || found == declared_.end() || !found->second->dims) continue;
    Dimensions dims;
    for (const DeclaredDimension& declared : *found->second->dims) {
      const auto given = options_.dimensions.find(declared.name);
      if (declared.value)
        dims.push_back(*declared.value);
      else if (given != options_.dimensions.end())
        dims.push_back(given->second);
    }
    if (dims.size() != found->second->dims->size() || !element_count(dims)) continue;
    tensor.dims = std::move(dims);
    tensor.type = found->second->type;
  }
}

bool KernelGraphReader::depends_on_data(const std::vector<std::int32_t>& inputs) const {
  return std::ranges::any_of(inputs, [&](std::int32_t input) {
    if (input < 0) return false;
    const GraphTensor& tensor = tensors_[static_cast<std::size_t>(input)];
    return !tensor.is_constant && !tensor.is_parameter();
  });
}

/// True if the outputs are another layout of parameters, which is not computed in every step.
bool KernelGraphReader::join_parameters(std::size_t v) {
  std::vector<std::int32_t> parameters;
  for (const std::int32_t input : inputs_[v]) {
    if (input < 0) continue;
    const auto& more = tensors_[static_cast<std::size_t>(input)].parameters;
    parameters.insert(parameters.end(), more.begin(), more.end());
  }
  parameters = without_repeats(std::move(parameters));
  if (parameters.empty() || parameters.size() > kMostJoinedParameters) return false;
  for (const std::int32_t output : outputs_[v]) {
    if (output < 0) continue;
    tensors_[static_cast<std::size_t>(output)].parameters = parameters;
    tensors_[static_cast<std::size_t>(output)].needs_gradient = settings_.is_training;
  }
  return true;
}

void KernelGraphReader::visit(std::size_t v) {
  for (const std::int32_t input : inputs_[v]) {
    if (input >= 0 && !tensors_[static_cast<std::size_t>(input)].dims)
      fail(v,
           fmt::format("the shape of its input '{}' is not known",
                       printable_text(tensors_[static_cast<std::size_t>(input)].name)),
           "export the model with fixed shapes, or with shapes of all intermediate tensors");
  }
  const auto has_shape = [&](std::int32_t output) {
    return output < 0 || tensors_[static_cast<std::size_t>(output)].dims.has_value();
  };
  if (!find_rule(graph_.nodes[v]) && !depends_on_data(inputs_[v]) && !reads_parameters(v)) {
    use_declared_shapes(v);
    mark_triangular(tensors_, inputs_[v], outputs_[v], {}, /*passes_on=*/true);
    if (std::ranges::all_of(outputs_[v], has_shape)) return set_constant(v);
  }
  const OperatorRule& rule = rule_of(v);
  if (rule.is_declared) use_declared_shapes(v);
  if (rule.is_declared && !std::ranges::all_of(outputs_[v], has_shape))
    fail(v, "the shapes of its outputs are not known", "add them to the file as value_info");
  NodeContext context(graph_.nodes[v], names_[v], settings_, rule, tensors_, inputs_[v],
                      outputs_[v], budget_);
  rule.apply(context);
  use_declared_shapes(v);
  mark_triangular(tensors_, inputs_[v], outputs_[v], rule.name, rule.fusion == Fusion::kElements);
  const bool has_data = depends_on_data(inputs_[v]);
  if (!has_data && rule.is_layout && join_parameters(v)) return;
  if (is_constant(v) || (!has_data && !reads_parameters(v))) return set_constant(v);
  add_work(v, context);
}

void KernelGraphReader::set_constant(std::size_t v) {
  for (const std::int32_t output : outputs_[v])
    if (output >= 0) tensors_[static_cast<std::size_t>(output)].is_constant = true;
}

bool KernelGraphReader::reads_parameters(std::size_t v) const {
  return std::ranges::any_of(inputs_[v], [&](std::int32_t input) {
    return input >= 0 && tensors_[static_cast<std::size_t>(input)].is_parameter();
  });
}

/// True if all outputs are known, and training does not change them.
bool KernelGraphReader::is_constant(std::size_t v) const {
  const bool can_be_trained = reads_parameters(v);
  return std::ranges::all_of(outputs_[v], [&](std::int32_t output) {
    if (output < 0) return true;
    const GraphTensor& tensor = tensors_[static_cast<std::size_t>(output)];
    return tensor.value.has_value() && !(can_be_trained && is_floating(tensor.type));
  });
}

// ---- result ---------------------------------------------------------------------------------

void KernelGraphReader::add_work(std::size_t v, const NodeContext& context) {
  KernelGraphNode work = context.work();
  bool passes_gradient = false;
  std::vector<std::int32_t> parameters;
  for (const std::int32_t input : inputs_[v]) {
    if (input < 0) continue;
    const GraphTensor& tensor = tensors_[static_cast<std::size_t>(input)];
    passes_gradient = passes_gradient || tensor.needs_gradient;
    parameters.insert(parameters.end(), tensor.parameters.begin(), tensor.parameters.end());
  }
  for (const std::int32_t parameter : without_repeats(std::move(parameters))) {
    const auto p = static_cast<std::size_t>(parameter);
    const std::int64_t elements = *element_count(*tensors_[p].dims);
    budget_.bytes -= static_cast<double>(elements) * kStateBytes;
    if (budget_.bytes < 0) fail(v, "the graph has too many parameters", "use smaller dimensions");
    std::int32_t& owner = owner_[p];
    if (owner >= 0) {
      work.tied.push_back({owner, elements});
    } else {
      work.parameters += elements;
      owner = static_cast<std::int32_t>(result_nodes_.size());
    }
  }
  for (const std::int32_t output : outputs_[v]) {
    if (output < 0) continue;
    GraphTensor& tensor = tensors_[static_cast<std::size_t>(output)];
    tensor.needs_gradient = passes_gradient && is_floating(tensor.type);
    if (tensor.dims) work.output += bytes_of(tensor, settings_.dtype);
  }
  result_[v] = static_cast<std::int32_t>(result_nodes_.size());
  result_nodes_.push_back({.work = std::move(work),
                           .rule = &context.rule(),
                           .inputs = inputs_[v],
                           .outputs = outputs_[v],
                           .saved = context.saved_tensors(),
                           .links = context.links()});
}

std::vector<KernelUnit> KernelGraphReader::fuse() {
  KernelNodes nodes{.nodes = std::move(result_nodes_),
                    .tensors = std::move(tensors_),
                    .producer = {},
                    .is_graph_output = {}};
  for (const GraphTensor& tensor : nodes.tensors)
    nodes.producer.push_back(
        tensor.producer < 0 ? -1 : result_[static_cast<std::size_t>(tensor.producer)]);
  nodes.is_graph_output.resize(nodes.tensors.size());
  for (const DeclaredTensor& output : graph_.outputs)
    if (const auto found = index_.find(output.name); found != index_.end())
      nodes.is_graph_output[static_cast<std::size_t>(found->second)] = true;
  if (options_.fuses_kernels) fuse_kernels(nodes, settings_);
  std::vector<KernelUnit> units;
  if (settings_.links_dimensions) units = kernel_units(nodes, settings_.dtype);
  result_nodes_ = std::move(nodes.nodes);
  tensors_ = std::move(nodes.tensors);
  return units;
}

/// Saved tensors belong to the nodes that compute them, and saved inputs of the graph to their
/// first reader.
void KernelGraphReader::add_saved_tensors() {
  const std::vector<std::int32_t> roots = roots_of(tensors_);
  const auto root = [&](std::int32_t tensor) {
    return static_cast<std::size_t>(roots[static_cast<std::size_t>(tensor)]);
  };
  std::vector<std::int32_t> owner(tensors_.size(), -1);
  std::vector<bool> is_saved(tensors_.size());
  for (std::size_t n = 0; n < result_nodes_.size(); ++n) {
    for (const std::int32_t input : result_nodes_[n].inputs)
      if (input >= 0 && owner[root(input)] < 0) owner[root(input)] = static_cast<std::int32_t>(n);
    for (const std::int32_t saved : result_nodes_[n].saved) is_saved[root(saved)] = true;
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const GraphTensor& tensor = tensors_[t];
    if (!is_saved[t] || tensor.is_parameter() || tensor.is_constant || !tensor.dims) continue;
    if (tensor.producer >= 0) owner[t] = result_[static_cast<std::size_t>(tensor.producer)];
    if (owner[t] < 0) continue;
    result_nodes_[static_cast<std::size_t>(owner[t])].work.saved +=
        bytes_of(tensor, settings_.dtype);
  }
}

void KernelGraphReader::add_edges() {
  for (std::size_t n = 0; n < result_nodes_.size(); ++n) {
    for (const std::int32_t input : without_repeats(result_nodes_[n].inputs)) {
      if (input < 0) continue;
      const GraphTensor& tensor = tensors_[static_cast<std::size_t>(input)];
      if (tensor.producer < 0 || result_[static_cast<std::size_t>(tensor.producer)] < 0) continue;
      edges_.push_back({.source = result_[static_cast<std::size_t>(tensor.producer)],
                        .target = static_cast<std::int32_t>(n),
                        .tensor = input,
                        .bytes = bytes_of(tensor, settings_.dtype),
                        .has_gradient = tensor.needs_gradient});
    }
  }
}

KernelsAndTensors KernelGraphReader::read() {
  declare_initializers();
  declare_inputs();
  declare_intermediates();
  name_nodes();
  connect();
  owner_.assign(tensors_.size(), -1);
  result_.assign(graph_.nodes.size(), -1);
  const std::vector<std::size_t> order = topological_order(inputs_, tensors_);
  if (order.size() < inputs_.size())
    fail(first_missing(order, inputs_.size()), "it depends on a cycle",
         "remove an edge of the cycle: the graph must be acyclic");
  for (const std::size_t v : order) visit(v);
  if (result_nodes_.empty())
    throw InputError({settings_.where, "no operator depends on an input",
                      "give a graph with at least one operator and one input"});
  std::vector<KernelUnit> units = fuse();
  add_saved_tensors();
  add_edges();
  KernelGraph kernels{
      .nodes = {}, .edges = std::move(edges_), .dtype = options_.dtype, .units = std::move(units)};
  for (KernelNode& node : result_nodes_) kernels.nodes.push_back(std::move(node.work));
  return {std::move(kernels), std::move(tensors_)};
}

}  // namespace

KernelsAndTensors read_kernels(const Graph& graph, const std::string& where,
                               const OnnxOptions& options) {
  return KernelGraphReader(graph, where, options).read();
}

}  // namespace onnx

bool looks_like_onnx(std::string_view bytes) { return onnx::looks_like_onnx(bytes); }

std::vector<std::string> symbolic_dimensions(const NamedText& file) {
  std::vector<std::string> names;
  const onnx::Graph graph = onnx::parse_onnx(file.text, file.where);
  for (const onnx::DeclaredTensor& input : graph.inputs)
    for (std::size_t axis = 0; input.dims && axis < input.dims->size(); ++axis) {
      if ((*input.dims)[axis].value) continue;
      std::string name = onnx::name_of_dimension(input, axis);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  return names;
}

KernelGraph read_onnx(const NamedText& file, const OnnxOptions& options) {
  const onnx::Graph graph = onnx::parse_onnx(file.text, file.where);
  return onnx::read_kernels(graph, file.where, options).kernels;
}

}  // namespace meshwright
