// The kernels of every operator. Letters: N local rows, B sequences, T sequence length, H hidden,
// A local heads, t tensor degree; e bytes of a stored element.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/operators/operator_work.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kMaskBytes = 1;

struct RoutineOf {
  Routine operator()(const EmbeddingLookup&) const { return Routine::kEmbedding; }
  Routine operator()(const Norm& norm) const {
    return norm.kind == NormKind::kRmsNorm ? Routine::kRmsNorm : Routine::kLayerNorm;
  }
  Routine operator()(const Linear&) const { return Routine::kProduct; }
  Routine operator()(const RotaryEmbedding&) const { return Routine::kRotary; }
  Routine operator()(const Attention&) const { return Routine::kAttention; }
  Routine operator()(const Activation& activation) const {
    switch (activation.kind) {
      case ActivationKind::kGelu:
        return Routine::kGelu;
      case ActivationKind::kRelu:
        return Routine::kRelu;
      case ActivationKind::kSquaredRelu:
        return Routine::kSquaredRelu;
      case ActivationKind::kSwiGlu:
        break;
    }
    return Routine::kSwiGlu;
  }
  Routine operator()(const ResidualAdd&) const { return Routine::kResidual; }
  Routine operator()(const RowGate&) const { return Routine::kSwiGlu; }
  Routine operator()(const Router&) const { return Routine::kProduct; }
  Routine operator()(const TokenDispatch&) const { return Routine::kDispatch; }
  Routine operator()(const TokenCombine&) const { return Routine::kCombine; }
  Routine operator()(const ExpertLinear&) const { return Routine::kProduct; }
  Routine operator()(const CrossEntropy&) const { return Routine::kCrossEntropy; }
};

struct Streaming {
  int launches = 1;
  std::optional<Routine> routine = {};  ///< absent: the operator's
};

struct MatrixShape {
  std::int64_t m = 0, n = 0, k = 0;
};

/// Collects the kernels of one operator in one phase.
class KernelWriter {
 public:
  KernelWriter(const ModelGraph& model, OperatorId id, const ShardShape& shard, Phase phase,
               std::vector<Kernel>& kernels)
      : model_(model),
        op_(model.operators[id.index()]),
        id_(id),
        shard_(shard),
        tokens_(local_tokens(shard)),
        tensor_(shard.degrees.tensor),
        element_(stored_element(shard.dtype).value),
        gradient_(bytes_per_element(shard.precision.gradients)),
        phase_(phase),
        quantized_(is_quantized(model, id, shard)),
        kernels_(kernels) {
    if (!quantized_) return;
    quantization_ = quantization_of(shard.dtype, shard.precision.fp8_recipe);
    copies_ = quantized_copies(shard);
  }

  void operator()(const EmbeddingLookup& table) const {
    // A sharded table looks up all tokens before the reduction over tensor ranks; a replicated one
    // only its own tokens.
    const std::int64_t rows = table_is_cut() ? tokens_.gathered : tokens_.cut;
    const std::int64_t elements = rows * table.width;
    if (phase_ == Phase::kForward) memory_bound(2 * elements * element_);
    if (phase_ == Phase::kBackwardWeight)
      memory_bound(elements * (element_ + 2 * gradient_));  // read gradient, add to rows
  }

  void operator()(const Norm&) const { elementwise(0); }

  void operator()(const Linear& linear) const {
    MatrixShape shape{rows_of(linear.cut), linear.out, linear.in};
    if (linear.cut == LinearCut::kColumn)
      shape.n = linear.out == vocabulary_ ? padded_vocabulary(linear.out, tensor_) / tensor_
                                          : local_columns(model_, op_, tensor_);
    if (linear.cut == LinearCut::kRow) shape.k = divide_up(shape.k, tensor_);
    if (quantized_) cast_operands(shape, 1, linear.cut);
    product(shape);
    if (linear.bias && phase_ == Phase::kBackwardWeight)
      // Column sums of the output's gradient.
      memory_bound(shape.m * shape.n * element_, {.routine = Routine::kBias});
  }

  void operator()(const RotaryEmbedding& rotary) const {
    if (phase_ == Phase::kBackwardWeight) return;
    memory_bound(2 * tokens_.gathered * divide_up(rotary.width, tensor_) * element_);
  }

  void operator()(const Attention& attention) const {
    if (phase_ == Phase::kBackwardWeight) return;
    if (shard_.attention == AttentionAlgorithm::kFlash)
      fused_attention(attention);
    else
      standard_attention(attention);
  }

  void operator()(const Activation&) const { elementwise(0); }

  void operator()(const ResidualAdd& add) const {
    elementwise(add.dropout ? tokens_.cut * add.width * kMaskBytes : 0);
  }

  void operator()(const RowGate&) const { elementwise(0); }

  void operator()(const Router& router) const {
    product({tokens_.cut, router.experts, router.hidden});
    if (phase_ == Phase::kBackwardWeight) return;
    memory_bound(2 * tokens_.cut * router.experts * kFloat32Bytes, {.routine = Routine::kRouting});
  }

  void operator()(const TokenDispatch& dispatch) const {
    if (phase_ == Phase::kBackwardWeight) return;
    // Forward: each token is read once and written K times; backward: vice versa.
    memory_bound((tokens_.dispatched + sent_rows()) * dispatch.width * element_);
    kernels_.back().needs_counts = phase_ == Phase::kForward && shard_.routing.capacity == 0;
  }

  void operator()(const TokenCombine& combine) const {
    if (phase_ == Phase::kBackwardWeight) return;
    memory_bound((tokens_.dispatched + sent_rows()) * combine.width * element_);
  }

  void operator()(const ExpertLinear& expert) const {
    const ParallelDegrees& degrees = shard_.degrees;
    const std::int64_t experts = divide_up(expert.experts, degrees.expert);
    const std::int64_t rows = routed_rows(shard_, {expert.experts_per_token, expert.experts},
                                          /*busiest=*/true) *
                              degrees.expert_tensor;
    MatrixShape shape{rows, expert.out, expert.in};
    if (expert.cut == LinearCut::kColumn) shape.n = divide_up(shape.n, degrees.expert_tensor);
    if (expert.cut == LinearCut::kRow) shape.k = divide_up(shape.k, degrees.expert_tensor);
    if (quantized_) cast_operands(shape, experts, LinearCut::kReplicated);
    product(shape, experts);
  }

  void operator()(const CrossEntropy&) const {
    if (phase_ == Phase::kBackwardWeight) return;
    const std::int64_t scores = tokens_.gathered * local_words(model_, op_, shard_);
    // Logits in the stored type, softmax in fp32; three forward sweeps (maximum, sum of
    // exponentials, target).
    memory_bound(scores * (element_ + kFloat32Bytes),
                 {.launches = phase_ == Phase::kForward ? 3 : 1});
  }

  void note_vocabulary(std::int64_t vocabulary) { vocabulary_ = vocabulary; }

 private:
  Kernel blank(KernelKind kind) const {
    Kernel kernel;
    kernel.kind = kind;
    kernel.phase = phase_;
    kernel.routine = std::visit(RoutineOf{}, op_.shape);
    kernel.dtype = quantized_ ? shard_.dtype : storage_dtype(shard_.dtype);
    if (quantized_) kernel.format = product_format_of(shard_.dtype, shard_.precision.fp8_recipe);
    kernel.source = id_;
    return kernel;
  }

  void memory_bound(std::int64_t traffic, const Streaming& stream = {}) const {
    Kernel kernel = blank(KernelKind::kMemoryBound);
    kernel.routine = stream.routine.value_or(kernel.routine);
    kernel.dtype = storage_dtype(kernel.dtype);
    kernel.memory_traffic = Bytes(traffic);
    kernel.launches = stream.launches;
    kernels_.push_back(kernel);
  }

  const ActivationTensor& activation(TensorId id) const {
    return std::get<ActivationTensor>(model_.tensors[id.index()].shape);
  }

  /// Reads inputs, writes outputs; backward reads both sides and writes gradients of the inputs.
  void elementwise(std::int64_t mask_bytes) const {
    if (phase_ == Phase::kBackwardWeight) return;
    std::int64_t in = 0, out = 0;
    for (const TensorId id : op_.inputs) in += activation_bytes(activation(id), shard_).value;
    for (const TensorId id : op_.outputs) out += activation_bytes(activation(id), shard_).value;
    const bool adds = std::holds_alternative<ResidualAdd>(op_.shape);
    // The gradient of a sum is passed through; only the sum of the two branches remains.
    const bool rereads_inputs = phase_ == Phase::kBackwardInput && !adds;
    memory_bound(in + out + mask_bytes + (rereads_inputs ? in : 0));
  }

  /// Number of rows that this rank dispatches and gets back.
  std::int64_t sent_rows() const {
    const bool dispatches = std::holds_alternative<TokenDispatch>(op_.shape);
    const ActivationTensor& rows =
        activation(dispatches ? op_.outputs.front() : op_.inputs.front());
    return routed_rows(shard_, {rows.rows_per_token, std::max(1, rows.experts)},
                       /*busiest=*/false);
  }

  bool table_is_cut() const {
    if (op_.parameters.empty()) return false;
    const auto& table =
        std::get<ParameterTensor>(model_.tensors[op_.parameters.front().index()].shape);
    return table.cut == ParameterCut::kTensor;
  }

  /// Sharded layers process all tokens of the tensor group, replicated ones their own.
  std::int64_t rows_of(LinearCut cut) const {
    return cut == LinearCut::kReplicated ? tokens_.cut : tokens_.gathered;
  }

  /// y[m, n] = x[m, k] W[k, n] on all rows; several experts share the rows.
  void product(MatrixShape forward, std::int64_t experts = 1) const {
    const std::int64_t rows = forward.m;
    Kernel kernel =
        blank(experts > 1 || is_expert() ? KernelKind::kGroupedGemm : KernelKind::kGemm);
    const std::int64_t x = rows * forward.k, y = rows * forward.n;
    const std::int64_t weights = experts * forward.k * forward.n;
    const std::int64_t rows_each = divide_up(rows, experts);
    kernel.batch = experts;
    kernel.flops = Flops(2.0 * static_cast<double>(rows) * static_cast<double>(forward.n) *
                         static_cast<double>(forward.k));
    switch (phase_) {
      case Phase::kForward:
        kernel.memory_traffic = operand(x) + operand(weights) + Bytes(y * element_);
        set(kernel, {rows_each, forward.n, forward.k});
        break;
      case Phase::kBackwardInput:
        kernel.memory_traffic = operand(y) + operand(weights) + Bytes(x * element_);
        set(kernel, {rows_each, forward.k, forward.n});
        break;
      case Phase::kBackwardWeight:
        set(kernel, {forward.k, forward.n, rows_each});
        kernel.memory_traffic = operand(x) + operand(y) + Bytes(2 * weights * gradient_);
        break;
      case Phase::kUpdate:
        return;
    }
    kernels_.push_back(kernel);
  }

  /// Bytes of an operand of a GEMM.
  Bytes operand(std::int64_t elements) const {
    return quantized_ ? quantized_bytes(quantization_, elements) : Bytes(elements * element_);
  }

  /// The casts before a quantized GEMM of these sizes (those of the forward pass); see
  /// precision.hpp. Tokens that are gathered before the GEMM are quantized before they are
  /// gathered.
  void cast_operands(MatrixShape forward, std::int64_t experts, LinearCut cut) const {
    const bool gathers = shard_.sequence_parallel && tensor_ > 1;
    const bool gathers_input = gathers && cut == LinearCut::kColumn;
    const bool gathers_gradient = gathers && cut == LinearCut::kRow;
    // A transpose is made from gathered tokens; other copies along columns are gathered themselves.
    const bool transposes = copies_ == 2 && quantization_.block == 0;
    const auto copies = [&](bool gathered) { return gathered && transposes ? 1 : copies_; };
    const auto rows = [&](bool gathered) { return gathered ? tokens_.cut : forward.m; };
    switch (phase_) {
      case Phase::kForward:
        if (shard_.gathers_weights) cast_weights(experts * forward.k * forward.n);
        cast(rows(gathers_input) * forward.k, copies(gathers_input));
        return;
      case Phase::kBackwardInput:
        if (shard_.gathers_weights) cast_weights(experts * forward.k * forward.n);
        cast(rows(gathers_gradient) * forward.n, copies(gathers_gradient));
        return;
      case Phase::kBackwardWeight:
        if (transposes && gathers_input) transpose(forward.m * forward.k);
        if (transposes && gathers_gradient) transpose(forward.m * forward.n);
        return;
      case Phase::kUpdate:
        return;
    }
  }
  /// Each kernel reads the 16-bit elements: one finds the largest, others write the copies.
  void cast(std::int64_t elements, int copies) const {
    const int writers = quantization_.separate_copies ? copies : 1;
    const int launches = writers + (quantization_.finds_maximum ? 1 : 0);
    memory_bound(launches * elements * element_ + copies * operand(elements).value,
                 {.launches = launches, .routine = Routine::kCast});
  }
  /// The copy along rows in the forward pass, along columns in the backward pass.
  void cast_weights(std::int64_t elements) const {
    const int launches = quantization_.finds_maximum ? 2 : 1;
    memory_bound(launches * elements * element_ + operand(elements).value,
                 {.launches = launches, .routine = Routine::kCast});
  }
  void transpose(std::int64_t elements) const {
    memory_bound(2 * operand(elements).value, {.launches = 1, .routine = Routine::kCast});
  }

  static void set(Kernel& kernel, MatrixShape shape) {
    kernel.m = shape.m;
    kernel.n = shape.n;
    kernel.k = shape.k;
  }

  bool is_expert() const { return std::holds_alternative<ExpertLinear>(op_.shape); }

  struct LocalAttention {
    std::int64_t heads = 0, key_value_heads = 0, queries = 0, keys = 0;
  };
  LocalAttention local(const Attention& attention) const {
    // All-to-all yields full sequences of a shard of the heads.
    const int parts = exchanges_heads() ? shard_.degrees.context : 1;
    return {.heads = divide_up(divide_up(attention.heads, tensor_), parts),
            .key_value_heads = divide_up(divide_up(attention.key_value_heads, tensor_), parts),
            .queries = exchanges_heads() ? shard_.sequence_length : tokens_.sequence,
            .keys = shard_.sequence_length};
  }
  bool exchanges_heads() const { return shard_.context == ContextAlgorithm::kAllToAll; }

  /// Average number of visible keys per query. Causal with window w (default: T): w - w^2 / 2T,
  /// i.e. T / 2 without a window. Context parallelism balances the causal triangle over its ranks.
  double mean_keys(const Attention& attention) const {
    const auto keys = static_cast<double>(shard_.sequence_length);
    const double window =
        std::min(keys, static_cast<double>(attention.window.value_or(shard_.sequence_length)));
    return attention.causal ? window - window * window / (2 * keys) : window;
  }

  /// Forward: QK^T and PV; backward: QK^T again, then dV, dP, dQ, dK.
  void fused_attention(const Attention& attention) const {
    const LocalAttention shape = local(attention);
    Kernel kernel = blank(KernelKind::kAttention);
    kernel.batch = shard_.sequences * shape.heads;
    kernel.m = shape.queries;
    kernel.n = std::min(shape.keys, attention.window.value_or(shape.keys));
    kernel.k = attention.key_size;
    kernel.value_size = attention.value_size;
    kernel.causal = attention.causal;
    kernel.dropout = attention.dropout > 0;
    const auto key_size = static_cast<double>(attention.key_size);
    const auto value_size = static_cast<double>(attention.value_size);
    const bool forward = phase_ == Phase::kForward;
    const double products = forward ? key_size + value_size : 3 * key_size + 2 * value_size;
    kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                         mean_keys(attention) * products);
    const std::int64_t query = shape.queries * shape.heads * attention.key_size;
    const std::int64_t output = shape.queries * shape.heads * attention.value_size;
    const std::int64_t key_value =
        shape.keys * shape.key_value_heads * (attention.key_size + attention.value_size);
    // In ring attention every chunk of keys reads the queries again, and all but the first also
    // read the partial output.
    if (shard_.context == ContextAlgorithm::kRing) kernel.pieces = shard_.degrees.context;
    const std::int64_t pieces = kernel.pieces;
    // Backward reads the same and the output's gradient, and writes gradients of Q, K, V.
    const std::int64_t elements = pieces * query + key_value + (2 * pieces - 1) * output;
    kernel.memory_traffic =
        Bytes(shard_.sequences * element_ * (forward ? elements : 2 * elements));
    kernels_.push_back(kernel);
  }

  void standard_attention(const Attention& attention) const {
    const LocalAttention shape = local(attention);
    const std::int64_t q = shape.queries, n = shape.keys;
    const std::int64_t key = attention.key_size, value = attention.value_size;
    const std::int64_t scores = shard_.sequences * shape.heads * q * n;
    const std::int64_t dropout_bytes = attention.dropout ? 2 * element_ + kMaskBytes : 0;
    const Streaming softmax{.launches = attention.dropout ? 2 : 1, .routine = Routine::kSoftmax};
    if (phase_ == Phase::kForward) {
      batched_product({q, n, key});
      memory_bound(scores * (2 * element_ + dropout_bytes), softmax);
      batched_product({q, value, n});
      return;
    }
    batched_product({q, n, value});  // gradient of the probabilities
    batched_product({n, value, q});  // of the values
    // Softmax backward reads probabilities and their gradient, writes the scores' gradient.
    memory_bound(scores * (3 * element_ + dropout_bytes), softmax);
    batched_product({q, key, n});  // of the queries
    batched_product({n, key, q});  // of the keys
  }

  void batched_product(MatrixShape shape) const {
    const auto& attention = std::get<Attention>(op_.shape);
    Kernel kernel = blank(KernelKind::kGemm);
    kernel.routine = Routine::kProduct;
    kernel.batch = shard_.sequences * local(attention).heads;
    set(kernel, shape);
    kernel.flops = Flops(2.0 * static_cast<double>(kernel.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n) * static_cast<double>(shape.k));
    kernel.memory_traffic = Bytes(kernel.batch * element_ *
                                  (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n));
    kernels_.push_back(kernel);
  }

  const ModelGraph& model_;
  const Operator& op_;
  OperatorId id_;
  const ShardShape& shard_;
  LocalTokens tokens_;
  int tensor_;
  std::int64_t element_, gradient_;
  Phase phase_;
  std::int64_t vocabulary_ = -1;
  bool quantized_;
  Quantization quantization_;
  int copies_ = 1;
  std::vector<Kernel>& kernels_;
};

/// Vocabulary size of the loss in the operator's layer, if it has one.
std::int64_t vocabulary_behind(const ModelGraph& model, OperatorId id) {
  for (std::size_t i = id.index(); i < model.operators.size() && i <= id.index() + 2; ++i)
    if (const auto* loss = std::get_if<CrossEntropy>(&model.operators[i].shape))
      return loss->vocabulary;
  return -1;
}

}  // namespace

void append_kernels(const ModelGraph& model, OperatorId op, const ShardShape& shard, Phase phase,
                    std::vector<Kernel>& kernels) {
  MW_CHECK(op.value >= 0 && op.index() < model.operators.size());
  if (phase == Phase::kUpdate) return;
  KernelWriter writer(model, op, shard, phase, kernels);
  writer.note_vocabulary(vocabulary_behind(model, op));
  std::visit(writer, model.operators[op.index()].shape);
}

std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase) {
  std::vector<Kernel> kernels;
  append_kernels(model, op, shard, phase, kernels);
  return kernels;
}

}  // namespace meshwright
