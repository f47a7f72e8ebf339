#include "core/operators/operator_program.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// True for operators that are sharded over the tensor ranks and need a full input.
bool needs_full_input(const ModelGraph& model, const Operator& op) {
  if (const auto* linear = std::get_if<Linear>(&op.shape)) return linear->cut == LinearCut::kColumn;
  const bool mixes = std::holds_alternative<Attention>(op.shape) ||
                     std::holds_alternative<RotaryEmbedding>(op.shape);
  return mixes && !op.outputs.empty() &&
         activation_of(model, op.outputs.front()).cut == ActivationCut::kFeatures;
}

/// All tokens as an operator reads them: quantized before they are gathered, if it is.
Bytes gathered_bytes(const LayerContext& context, int i, std::int64_t width) {
  const std::int64_t elements = context.tokens.gathered * width;
  const ShardShape& shard = context.shard;
  if (!is_quantized(context.model, OperatorId(context.layer.first_operator + i), shard))
    return stored_element(shard.dtype) * elements;
  return quantized_bytes(quantization_of(shard.dtype, shard.precision.fp8_recipe), elements);
}

}  // namespace

LayerContext::LayerContext(const ModelGraph& of_model, LayerId layer_id, const ShardShape& shape,
                           const JobGroups& job_groups)
    : model(of_model),
      layer(of_model.layers[layer_id.index()]),
      shard(shape),
      groups(job_groups),
      tokens(local_tokens(shape)) {
  if (shard.degrees.tensor == 1) return;
  const std::span<const Operator> operators = operators_of(model, layer_id);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (!needs_full_input(model, operators[i])) continue;
    const int reader = static_cast<int>(i);
    for (const TensorId id : operators[i].inputs) {
      const ActivationTensor& tensor = activation_of(model, id);
      if (tensor.cut != ActivationCut::kTokens || tensor.routed) continue;
      const auto known = std::ranges::find(entering, id, &EnteringTensor::tensor);
      if (known != entering.end())
        known->last_reader = reader;
      else
        entering.push_back({id, reader, reader, gathered_bytes(*this, reader, tensor.width),
                            stored_element(shard.dtype) * (tokens.gathered * tensor.width)});
    }
  }
}

// ---- the operator ---------------------------------------------------------------------------

ShardedOperator::ShardedOperator(const LayerContext& layer)
    : context_(layer), element_(stored_element(layer.shard.dtype).value) {}

void ShardedOperator::select(int index, Phase phase, bool is_combined) {
  index_ = index;
  op_ = &context_.model.operators[id().index()];
  phase_ = phase;
  is_combined_ = is_combined;
}

Bytes ShardedOperator::token_bytes(std::int64_t width) const {
  return Bytes(tokens().gathered * width * element_);
}

bool ShardedOperator::reads_entering_first() const {
  return std::ranges::find(context_.entering, index_, &EnteringTensor::first_reader) !=
         context_.entering.end();
}

bool ShardedOperator::overlaps_product() const {
  return context_.overlaps_products && std::holds_alternative<Linear>(op_->shape);
}
bool ShardedOperator::overlaps_gradient() const {
  return context_.overlaps_gradients && std::holds_alternative<Linear>(op_->shape);
}

OperatorProgram::OperatorProgram(const LayerContext& layer, std::vector<Step>& steps,
                                 LiveBuffers* live)
    : ShardedOperator(layer),
      steps_(steps),
      live_(live),
      gradient_(bytes_per_element(layer.shard.precision.gradients)) {
  if (!is_quantized(layer.shard.dtype)) return;
  quantization_ = quantization_of(layer.shard.dtype, layer.shard.precision.fp8_recipe);
  copies_ = quantized_copies(layer.shard);
}

void OperatorProgram::begin(int index, Phase phase, bool is_combined) {
  select(index, phase, is_combined);
  quantized_ = is_quantized(model(), id(), shard());
}

// ---- kernels --------------------------------------------------------------------------------

Kernel OperatorProgram::kernel(KernelKind kind, Routine routine) const {
  Kernel made;
  made.kind = kind;
  made.phase = phase_;
  made.routine = routine;
  made.dtype = quantized_ ? shard().dtype : storage_dtype(shard().dtype);
  if (quantized_) made.format = product_format_of(shard().dtype, shard().precision.fp8_recipe);
  made.source = id();
  return made;
}

void OperatorProgram::memory_bound(Routine routine, std::int64_t traffic, int launches) {
  Kernel made = kernel(KernelKind::kMemoryBound, routine);
  made.dtype = storage_dtype(made.dtype);
  made.memory_traffic = Bytes(traffic);
  made.launches = launches;
  append(made);
}

void OperatorProgram::elementwise(Routine routine, std::int64_t mask_bytes, bool rereads_inputs) {
  std::int64_t in = 0, out = 0;
  for (const TensorId id : op_->inputs) in += activation_bytes(activation(id), shard()).value;
  for (const TensorId id : op_->outputs) out += activation_bytes(activation(id), shard()).value;
  const bool rereads = phase_ == Phase::kBackwardInput && rereads_inputs;
  memory_bound(routine, in + out + mask_bytes + (rereads ? in : 0));
}

void OperatorProgram::product(const MatrixShape& forward, std::int64_t experts, int pieces) {
  const bool grouped = experts > 1 || std::holds_alternative<ExpertLinear>(op_->shape);
  Kernel made = kernel(grouped ? KernelKind::kGroupedGemm : KernelKind::kGemm, Routine::kProduct);
  const std::int64_t rows = forward.m, rows_each = divide_up(rows, experts);
  const std::int64_t x = rows * forward.k, y = rows * forward.n;
  const std::int64_t weights = experts * forward.k * forward.n;
  const auto set = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    made.m = m, made.n = n, made.k = k;
  };
  made.batch = experts;
  made.flops = Flops(2.0 * static_cast<double>(rows) * static_cast<double>(forward.n) *
                     static_cast<double>(forward.k));
  switch (phase_) {
    case Phase::kForward:
      made.memory_traffic = operand(x) + operand(weights) + Bytes(y * element_);
      set(rows_each, forward.n, forward.k);
      break;
    case Phase::kBackwardInput:
      made.memory_traffic = operand(y) + operand(weights) + Bytes(x * element_);
      set(rows_each, forward.k, forward.n);
      break;
    case Phase::kBackwardWeight:
      made.memory_traffic = operand(x) + operand(y) + Bytes(2 * weights * gradient_);
      set(forward.k, forward.n, rows_each);
      break;
    case Phase::kUpdate:
      return;
  }
  made.pieces = pieces;
  made.memory_traffic += operand(made.n * made.k) * std::int64_t{pieces - 1};
  append(made);
}

/// Bytes of an operand of a GEMM.
Bytes OperatorProgram::operand(std::int64_t elements) const {
  return quantized_ ? quantized_bytes(quantization_, elements) : Bytes(elements * element_);
}

/// A transpose is made from gathered tokens; other copies along columns are gathered themselves.
bool OperatorProgram::transposes() const { return copies_ == 2 && quantization_.block == 0; }

void OperatorProgram::cast_operands(const MatrixShape& forward, std::int64_t experts,
                                    LinearCut cut) {
  if (!quantized_) return;
  const bool gathers = shard().sequence_parallel && is_cut();
  const bool gathers_input = gathers && cut == LinearCut::kColumn;
  const bool gathers_gradient = gathers && cut == LinearCut::kRow;
  const auto copies = [&](bool gathered) { return gathered && transposes() ? 1 : copies_; };
  const auto rows = [&](bool gathered) { return gathered ? tokens().cut : forward.m; };
  switch (phase_) {
    case Phase::kForward:
      if (shard().gathers_weights) cast_weights(experts * forward.k * forward.n);
      cast(rows(gathers_input) * forward.k, copies(gathers_input));
      return;
    case Phase::kBackwardInput:
      if (shard().gathers_weights) cast_weights(experts * forward.k * forward.n);
      cast(rows(gathers_gradient) * forward.n, copies(gathers_gradient));
      return;
    case Phase::kBackwardWeight:
      if (transposes() && gathers_input) transpose(forward.m * forward.k);
      if (transposes() && gathers_gradient) transpose(forward.m * forward.n);
      return;
    case Phase::kUpdate:
      return;
  }
}

int OperatorProgram::casts_before_weight_gradient(LinearCut cut) const {
  const bool gathers = shard().sequence_parallel && is_cut() && cut != LinearCut::kReplicated;
  return quantized_ && transposes() && gathers ? 1 : 0;
}

/// Each kernel reads the 16-bit elements: one finds the largest, others write the copies.
void OperatorProgram::cast(std::int64_t elements, int copies) {
  const int writers = quantization_.separate_copies ? copies : 1;
  const int launches = writers + (quantization_.finds_maximum ? 1 : 0);
  memory_bound(Routine::kCast, launches * elements * element_ + copies * operand(elements).value,
               launches);
}
/// The copy along rows in the forward pass, along columns in the backward pass.
void OperatorProgram::cast_weights(std::int64_t elements) {
  const int launches = quantization_.finds_maximum ? 2 : 1;
  memory_bound(Routine::kCast, launches * elements * element_ + operand(elements).value, launches);
}
void OperatorProgram::transpose(std::int64_t elements) {
  memory_bound(Routine::kCast, 2 * operand(elements).value);
}

// ---- collectives ----------------------------------------------------------------------------

void OperatorProgram::communicate(Collective made, TensorId tensor, Phase phase) {
  if (made.group.ranks == 1) return;
  made.source = id();
  made.tensor = tensor;
  made.phase = phase;
  steps_.emplace_back(made);
}

void OperatorProgram::over_tensor(CollectiveKind kind, Bytes bytes, TensorId tensor, Phase phase,
                                  const Overlap& overlap) {
  Collective made;
  made.kind = kind;
  made.axis = Axis::kTensor;
  made.bytes = bytes;
  made.group = context_.groups.tensor;
  made.overlap = overlap;
  communicate(made, tensor, phase);
}

void OperatorProgram::gather(TensorId tensor, Bytes bytes, Phase phase, const Overlap& overlap) {
  if (context_.groups.tensor.ranks == 1) return;
  if (live_ != nullptr) {
    const bool is_value =
        phase == Phase::kForward || std::ranges::find(op_->inputs, tensor) != op_->inputs.end();
    live_->acquire(
        LiveBuffers::key(tensor, is_value ? Form::kGatheredValue : Form::kGatheredGradient),
        {live_->gathered(tensor), MemoryClass::kWorking});
  }
  over_tensor(CollectiveKind::kAllGather, bytes, tensor, phase, overlap);
}

void OperatorProgram::gather_entering() {
  if (!shard().sequence_parallel) return;
  for (const EnteringTensor& e : context_.entering)
    if (e.first_reader == index_) gather(e.tensor, e.gathered, phase_, in_pieces(+1));
}

void OperatorProgram::reduce_entering_gradients(int overlapped_steps) {
  const CollectiveKind kind =
      shard().sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  for (const EnteringTensor& e : context_.entering) {
    if (e.first_reader != index_) continue;
    if (live_ != nullptr && context_.groups.tensor.ranks > 1) {
      const HeldBuffer sum = live_->consume(LiveBuffers::key(e.tensor, Form::kPartialGradient));
      if (kind == CollectiveKind::kAllReduce && !live_->has(LiveBuffers::gradient(e.tensor)))
        live_->acquire(LiveBuffers::gradient(e.tensor), sum);
      else
        live_->meanwhile(sum, [&] { live_->acquire_gradient(e.tensor); });
    }
    over_tensor(kind, e.gradient, e.tensor, Phase::kBackwardInput,
                as_a_whole(+overlapped_steps, overlapped_steps > 0));
  }
}

void OperatorProgram::gather_entering_again(bool next_to_product) {
  if (!shard().sequence_parallel || !std::holds_alternative<Linear>(op_->shape)) return;
  for (const EnteringTensor& e : context_.entering)
    if (e.last_reader == index_)
      gather(e.tensor, e.gathered, Phase::kBackwardWeight, as_a_whole(-1, next_to_product));
}

void OperatorProgram::reduce_output(std::int64_t width) {
  if (context_.groups.tensor.ranks == 1) return;
  const bool scatters = shard().sequence_parallel;
  if (live_ != nullptr && scatters) {
    const HeldBuffer all = live_->consume(LiveBuffers::key(output()));
    live_->meanwhile(
        all, [&] { live_->acquire(LiveBuffers::key(output()), live_->value_of(output())); });
  }
  over_tensor(scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
              token_bytes(width), output(), phase_, in_pieces(-1));
}

void OperatorProgram::gather_output_gradient(std::int64_t width) {
  if (shard().sequence_parallel)
    gather(output(), gathered_bytes(context_, index_, width), phase_, in_pieces(+1));
}

// ---- buffers --------------------------------------------------------------------------------

void OperatorProgram::acquire_outputs(bool partial) {
  if (live_ == nullptr) return;
  for (const TensorId out : op_->outputs) {
    HeldBuffer made = live_->value_of(out);
    if (partial) made.bytes = live_->gathered(out);
    live_->acquire(LiveBuffers::key(out), made);
  }
}

void OperatorProgram::acquire_input_gradients() {
  if (live_ == nullptr) return;
  for (const TensorId in : op_->inputs) live_->acquire_gradient(in);
}

// ---- overlap --------------------------------------------------------------------------------

/// Overlap with the GEMM that consumes or produces the data, in one chunk per tensor rank.
Overlap OperatorProgram::in_pieces(int direction) const {
  if (!overlaps_product()) return {};
  return {.kernels = direction, .pieces = tensor_ranks()};
}
/// Overlap with an independent GEMM.
Overlap OperatorProgram::as_a_whole(int direction, bool product_is_there) const {
  if (!product_is_there || !overlaps_gradient()) return {};
  return {.kernels = direction, .pieces = 0};
}

}  // namespace meshwright
