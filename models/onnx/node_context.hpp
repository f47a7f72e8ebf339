/// What the rule of an operator reads and sets: shapes and values of its tensors, and its kernels.
///
/// A rule sets the shape of every output, and then describes the work: products and memory-bound
/// kernels of the forward pass. The backward pass follows from them:
///   product C = A B     dA = dC B^T and dB = A^T dC, each as many FLOPs as the product, and each
///                       only if its result needs a gradient; B is saved for dA, A for dB
///   memory-bound        one kernel that reads the gradients of the outputs and the saved tensors,
///                       and writes the gradients of the inputs that need one
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/model/kernel_graph.hpp"
#include "models/onnx/onnx_graph.hpp"

namespace meshwright::onnx {

class NodeContext;

/// A dimension of a tensor, or one of several that it was made of: `size` steps of `stride`
/// elements.
struct TensorDimension {
  std::int32_t tensor = 0, dim = 0;
  std::int64_t stride = 1, size = 1;
  friend auto operator<=>(const TensorDimension&, const TensorDimension&) = default;
};

/// Dimensions of the inputs and outputs of a node: along which it can be sharded.
struct DimensionLinks {
  struct Pair {
    TensorDimension a, b;
  };
  struct Limit {
    TensorDimension dimension;
    std::int64_t parts = 1;
  };
  struct Statistics {
    TensorDimension dimension;
    Bytes bytes;
  };
  std::vector<Pair> pairs;              ///< the same: a part of one needs that part of the other
  std::vector<TensorDimension> summed;  ///< the outputs are sums over this dimension
  std::vector<Limit> limits;            ///< it has fewer equal parts than elements: heads
  std::vector<Statistics> statistics;   ///< a part of it needs sums over all of it
};

/// Tensors that the gradient of a memory-bound operator reads. Factors: inputs of a product of
/// elements, each for the gradients of the others.
enum class Saves : std::uint8_t { kNothing, kInputs, kFactors, kOutput };

/// How a memory-bound kernel can be part of a larger one (fuse_kernels.hpp).
enum class Fusion : std::uint8_t {
  kNone,
  kElements,  ///< an element of the result needs an element of each input, or copies one
  kRows       ///< it needs a row, i.e. all elements along the last axis
};

/// A row of the table of operators.
struct OperatorRule {
  std::string_view name;
  void (*apply)(NodeContext&);
  Routine routine = Routine::kResidual;  ///< of memory-bound kernels
  Saves saves = Saves::kNothing;
  bool is_layout = false;    ///< of parameters alone: done once, before training
  bool is_declared = false;  ///< the shapes of its outputs are in the file
  Fusion fusion = Fusion::kNone;
};

/// Properties of the whole graph that rules depend on.
struct GraphSettings {
  std::string where;           ///< of the file, for messages
  Dtype dtype = Dtype::kBf16;  ///< of floating-point tensors
  bool is_training = true;
  std::int64_t opset = 0;  ///< version of the standard operators
  bool links_dimensions = true;
};

/// What is left of the limits of a graph.
struct GraphBudget {
  std::int64_t values = 1 << 24;  ///< elements of values that are kept
  double bytes = 0x1p58;          ///< inputs and outputs of all nodes: sums fit int64
};

/// Sizes of a product, batch x ([m, k] · [k, n]).
struct ProductSize {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool is_grouped = false;  ///< m rows on average
};

class NodeContext {
 public:
  NodeContext(const Node& node, const std::string& name, const GraphSettings& settings,
              const OperatorRule& rule, std::vector<GraphTensor>& tensors,
              std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
              GraphBudget& budget);

  const Node& node() const { return node_; }
  const OperatorRule& rule() const { return rule_; }
  const GraphSettings& settings() const { return settings_; }
  /// InputError at this node.
  [[noreturn]] void fail(const std::string& what, const std::string& hint) const;
  void require(bool condition, const char* what) const;

  // ---- inputs and attributes ----
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return outputs_.size(); }
  bool has_input(std::size_t i) const { return i < inputs_.size() && inputs_[i] >= 0; }
  bool has_output(std::size_t i) const { return i < outputs_.size() && outputs_[i] >= 0; }
  const GraphTensor& input(std::size_t i) const;
  const Dimensions& dims(std::size_t i) const { return *input(i).dims; }
  std::size_t rank(std::size_t i) const { return dims(i).size(); }
  std::int64_t elements(std::size_t i) const;
  /// Of an input that determines a shape; fails if it depends on data.
  std::vector<std::int64_t> known_integers(std::size_t i) const;
  std::vector<double> known_values(std::size_t i) const;
  const Attribute* attribute(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::vector<std::int64_t> integers(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  /// An input, or in older versions of the operator an attribute; empty if neither is given.
  std::optional<std::vector<std::int64_t>> integers_of_input_or_attribute(
      std::size_t i, std::string_view name) const;
  /// An axis, from -rank to rank - 1, as an index.
  std::size_t axis_of(std::int64_t axis, std::size_t rank) const;

  // ---- outputs ----
  void set_output(std::size_t i, Dimensions dims, ElementType type);
  /// Of the type of the first input.
  void set_output(Dimensions dims) { set_output(0, std::move(dims), input(0).type); }
  const Dimensions& output_dims(std::size_t i) const;
  std::int64_t output_elements(std::size_t i) const;
  /// Keeps small values, of which shapes are computed.
  void set_value(std::size_t i, std::vector<double> values);
  bool values_are_known() const;  ///< of all inputs
  /// Output `i` is a view of the first input: it takes neither time nor memory.
  void share_memory(std::size_t i = 0);
  /// Output 0 is a view with its axes in another order, of which only copies have other shapes.
  void share_memory_transposed();
  /// Not trained: running means.
  void exclude_parameter(std::size_t i);

  // ---- dimensions that are the same ----
  // Those with one element are ignored: every device has them.
  void link(std::size_t i, std::size_t dim, std::size_t output_dim, std::size_t output = 0);
  void link_inputs(std::size_t i, std::size_t dim, std::size_t j, std::size_t other_dim);
  /// By position from the last one, as in broadcasting; `i` and the output.
  void link_aligned(std::size_t i, std::size_t output = 0);
  /// The first `count` dimensions of input 0 and output 0.
  void link_leading(std::size_t count);
  /// Input 0 and output 0 have the same elements in the same order.
  void link_reshaped();
  void sum_over(std::size_t i, std::size_t dim);
  void limit_parts(std::size_t i, std::size_t dim, std::int64_t parts);
  void sum_statistics(std::size_t i, std::size_t dim, std::int64_t bytes);
  const DimensionLinks& links() const { return links_; }

  // ---- work ----
  std::int64_t bytes_of_input(std::size_t i) const;
  std::int64_t bytes_of_output(std::size_t i) const;
  /// One kernel that reads all inputs and writes all outputs, and its gradient by rule().
  void memory_bound();
  /// With the bytes that it reads and writes, and those of its gradient.
  void memory_bound(std::int64_t forward, std::int64_t backward);
  /// A product of input `a` and input `b` into output 0, with the bytes of these tensors.
  void product(const ProductSize& size, std::size_t a = 0, std::size_t b = 1);
  /// A product with given traffic of either operand and result.
  struct ProductBytes {
    std::int64_t a = 0, b = 0, result = 0;
  };
  void product(const ProductSize& size, const ProductBytes& bytes, std::size_t a, std::size_t b);
  void add_forward(const Kernel& kernel) { work_.forward.push_back(kernel); }
  void add_backward(const Kernel& kernel) { work_.backward.push_back(kernel); }
  void save_input(std::size_t i);
  void save_output(std::size_t i);
  void save(std::int64_t bytes) { work_.saved += Bytes(bytes); }  ///< statistics, masks
  /// The gradient of input `i`, a bias: the sums of the gradients of output 0.
  void bias_gradient(std::size_t i);
  bool needs_gradient(std::size_t i) const { return has_input(i) && input(i).needs_gradient; }
  bool any_needs_gradient() const;
  Kernel kernel(KernelKind kind, Phase phase) const;
  std::int64_t element_bytes() const;  ///< of floating-point tensors
  Flops product_flops(const ProductSize& size) const;

  const KernelGraphNode& work() const { return work_; }
  /// Tensors that the backward pass reads.
  const std::vector<std::int32_t>& saved_tensors() const { return saved_; }

 private:
  GraphTensor& tensor(std::int32_t index) const;
  TensorDimension dimension(std::int32_t index, std::size_t dim) const;
  void link(const TensorDimension& a, const TensorDimension& b);
  bool is_factor(std::size_t i) const;
  void spend_bytes(std::int64_t bytes);
  void check_product(const ProductSize& size) const;
  Kernel product_kernel(const ProductSize& size, Phase phase, std::int64_t bytes) const;

  const Node& node_;
  const GraphSettings& settings_;
  const OperatorRule& rule_;
  std::vector<GraphTensor>& tensors_;
  std::vector<std::int32_t> inputs_, outputs_;
  GraphBudget& budget_;
  KernelGraphNode work_;
  std::vector<std::int32_t> saved_;
  DimensionLinks links_;
};

/// Of a tensor of known shape; floating-point tensors are stored in `dtype`.
Bytes bytes_of(const GraphTensor& tensor, Dtype dtype);
/// "[2, 3]"
std::string to_text(const Dimensions& dims);
/// The numpy rules; empty if the shapes do not fit.
std::optional<Dimensions> broadcast(const Dimensions& a, const Dimensions& b);

}  // namespace meshwright::onnx
