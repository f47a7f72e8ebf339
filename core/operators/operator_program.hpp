/// The program of one operator in one pass: kernel calls, collectives, and the buffers that they
/// acquire, in execution order. One description, three readers: cost models price the steps, the
/// memory model counts the buffers, the executor runs the steps and frees the buffers.
///
/// Each operator is described in a file of its own (linear.cpp, attention.cpp, …); operators.hpp
/// lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/buffers.hpp"
#include "core/operators/shard_shape.hpp"
#include "core/plan/job_groups.hpp"

namespace meshwright {

/// A full tensor read by sharded operators; operator indices start at the layer's first.
struct EnteringTensor {
  TensorId tensor;
  int first_reader = 0, last_reader = 0;
  Bytes gathered;  ///< all tokens as they are gathered
  Bytes gradient;  ///< their gradient
};

/// What the operators of a layer have in common.
///
/// Tensor parallelism (Shoeybi et al., arXiv 1909.08053; with sequence parallelism Korthikanti et
/// al., arXiv 2205.05198, section 4.2.2). A full tensor *enters* the tensor-parallel region once,
/// even if several operators read it; the output of a row-parallel operator *leaves* it:
///             forward                       backward
///   enter     all-gather (SP), else none    reduce-scatter (SP), else all-reduce of its gradient;
///                                           with SP the input is gathered again for the weight
///                                           gradient, as it is not saved
///   leave     reduce-scatter (SP), else     all-gather of the gradient (SP), else none
///             all-reduce
struct LayerContext {
  /// Refers to its arguments.
  LayerContext(const ModelGraph& of_model, LayerId layer_id, const ShardShape& shape,
               const JobGroups& job_groups);

  const ModelGraph& model;
  const Layer& layer;
  const ShardShape& shard;
  const JobGroups& groups;
  LocalTokens tokens;
  std::vector<EnteringTensor> entering;
  /// Tensor-parallel communication overlaps with the GEMMs of the layer (`tensor_overlap`), or only
  /// the reductions of input gradients with weight gradients.
  bool overlaps_products = false, overlaps_gradients = false;
  /// Selective recomputation repeats the all-to-all of heads (ContextAlgorithm).
  bool exchanges_heads_again = false;
  /// Of the ranks that share the tokens: of tensor ranks if they do; see LayerOptions::tensor.
  Axis context_axis = Axis::kContext;
};

inline constexpr std::int64_t kMaskBytes = 1;  ///< of an element of a dropout mask

/// Sizes of y[m, n] = x[m, k] W[k, n] on one rank.
struct MatrixShape {
  std::int64_t m = 0, n = 0, k = 0;
};

/// The operator being described, and how it is sharded.
class ShardedOperator {
 public:
  explicit ShardedOperator(const LayerContext& layer);

  const ModelGraph& model() const { return context_.model; }
  const LayerContext& layer() const { return context_; }
  const Operator& op() const { return *op_; }
  OperatorId id() const { return OperatorId(context_.layer.first_operator + index_); }
  TensorId input(std::size_t i = 0) const { return op_->inputs[i]; }
  TensorId output(std::size_t i = 0) const { return op_->outputs[i]; }
  const ActivationTensor& activation(TensorId id) const { return activation_of(model(), id); }

  const ShardShape& shard() const { return context_.shard; }
  const LocalTokens& tokens() const { return context_.tokens; }
  int tensor_ranks() const { return shard().degrees.tensor; }
  bool is_cut() const { return tensor_ranks() > 1; }
  std::int64_t element() const { return element_; }  ///< bytes of a stored element
  Bytes token_bytes(std::int64_t width) const;       ///< all tokens of the tensor group
  bool reads_entering_first() const;                 ///< of the readers of an entering tensor

  Phase phase() const { return phase_; }
  bool is_forward() const { return phase_ == Phase::kForward; }
  /// Input and weight gradients are computed in one pass.
  bool is_combined() const { return is_combined_; }
  /// Whether the communication of this operator, a GEMM, overlaps with it, and the reduction of its
  /// input gradient with a weight gradient.
  bool overlaps_product() const;
  bool overlaps_gradient() const;

 protected:
  void select(int index, Phase phase, bool is_combined);

  const LayerContext& context_;
  const Operator* op_ = nullptr;
  int index_ = 0;
  Phase phase_ = Phase::kForward;
  bool is_combined_ = false;
  std::int64_t element_;
};

class OperatorProgram : public ShardedOperator {
 public:
  /// Appends to `steps`; `live` may be null: buffers are not counted.
  OperatorProgram(const LayerContext& layer, std::vector<Step>& steps, LiveBuffers* live);
  /// Describes operator `index` of the layer from now on. `is_combined`: input and weight gradients
  /// are computed in one pass.
  void begin(int index, Phase phase, bool is_combined = false);

  // ---- kernels ----
  /// A kernel of this operator without sizes.
  Kernel kernel(KernelKind kind, Routine routine) const;
  void append(const Kernel& made) { steps_.emplace_back(made); }
  void memory_bound(Routine routine, std::int64_t traffic, int launches = 1);
  /// Reads inputs, writes outputs; backward reads both sides and writes gradients of the inputs.
  /// `rereads_inputs`: false for sums, whose gradient is passed through.
  void elementwise(Routine routine, std::int64_t mask_bytes = 0, bool rereads_inputs = true);
  /// y[m, n] = x[m, k] W[k, n] or one of its gradients, from the sizes of the forward pass; several
  /// experts share the rows. With `pieces` it is split so that communication overlaps with it, and
  /// each piece reads all weights.
  void product(const MatrixShape& forward, std::int64_t experts = 1, int pieces = 1);
  /// The casts before a quantized GEMM of these sizes (those of the forward pass); see
  /// precision.hpp. Tokens that are gathered before the GEMM are quantized before they are
  /// gathered.
  void cast_operands(const MatrixShape& forward, std::int64_t experts, LinearCut cut);
  /// Number of casts that cast_operands() puts before the product of the weight gradient.
  int casts_before_weight_gradient(LinearCut cut) const;

  // ---- collectives ----
  /// Appends nothing for a group of one; `tensor` as in Collective.
  void communicate(Collective made, TensorId tensor) { communicate(made, tensor, phase_); }
  void communicate(Collective made, TensorId tensor, Phase phase);
  /// The tokens of the tensors that enter the tensor-parallel region here.
  void gather_entering();
  /// Gradients of the tensors that entered here: partial sums are reduced over the tensor ranks,
  /// next to the following `overlapped_steps` steps, up to the GEMM of the weight gradient.
  void reduce_entering_gradients(int overlapped_steps = 0);
  /// Gathers inputs again for the weight gradient, as gathered inputs are not saved. In reverse
  /// order the last reader comes first and gathers for all readers.
  void gather_entering_again(bool next_to_product);
  /// Of a row-parallel operator or a sharded table with outputs of this width.
  void reduce_output(std::int64_t width);
  void gather_output_gradient(std::int64_t width);

  // ---- buffers ----
  /// Null if buffers are not counted.
  LiveBuffers* buffers() const { return live_; }
  /// Every tensor rank has a partial sum for all tokens if `partial`.
  void acquire_outputs(bool partial = false);
  void acquire_input_gradients();

 private:
  void over_tensor(CollectiveKind kind, Bytes bytes, TensorId tensor, Phase phase,
                   const Overlap& overlap);
  void gather(TensorId tensor, Bytes bytes, Phase phase, const Overlap& overlap);
  Overlap in_pieces(int direction) const;
  Overlap as_a_whole(int direction, bool product_is_there) const;
  Bytes operand(std::int64_t elements) const;
  void cast(std::int64_t elements, int copies);
  void cast_weights(std::int64_t elements);
  void transpose(std::int64_t elements);
  bool transposes() const;

  std::vector<Step>& steps_;
  LiveBuffers* live_;
  std::int64_t gradient_;   ///< bytes of a gradient element
  bool quantized_ = false;  ///< the operator's GEMM
  Quantization quantization_;
  int copies_ = 1;
};

}  // namespace meshwright
