// Linear layers of the experts on this rank, over the rows routed to them (grouped GEMM), sharded
// over the expert-tensor ranks like a dense layer over the tensor ranks.
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

struct LocalExperts {
  std::int64_t count = 1;
  MatrixShape shape;
};
LocalExperts local_experts(const ExpertLinear& expert, const ShardedOperator& program) {
  const ParallelDegrees& degrees = program.shard().degrees;
  const std::int64_t rows =
      routed_rows(program.shard(), {expert.experts_per_token, expert.experts}, /*busiest=*/true) *
      degrees.expert_tensor;
  LocalExperts local{divide_up(expert.experts, degrees.expert), {rows, expert.out, expert.in}};
  std::int64_t& cut = expert.cut == LinearCut::kColumn ? local.shape.n : local.shape.k;
  if (expert.cut != LinearCut::kReplicated) cut = divide_up(cut, degrees.expert_tensor);
  return local;
}

void multiply(const ExpertLinear& expert, OperatorProgram& program) {
  const LocalExperts local = local_experts(expert, program);
  program.cast_operands(local.shape, local.count, LinearCut::kReplicated);
  program.product(local.shape, local.count);
}

/// Each expert-tensor rank holds a shard of the biases of row-parallel layers and adds it to an
/// otherwise zero row, one per expert.
HeldBuffer widened_bias(const ExpertLinear& expert, const ShardedOperator& program) {
  const ParallelDegrees& d = program.shard().degrees;
  if (!expert.bias || d.expert_tensor == 1 || expert.cut != LinearCut::kRow) return {};
  const ActivationTensor& out = program.activation(program.output());
  return {Bytes(program.element() * (out.experts / d.expert * out.width)), MemoryClass::kWorking};
}

}  // namespace

void forward(const ExpertLinear& expert, OperatorProgram& program) {
  program.acquire_outputs();
  if (LiveBuffers* live = program.buffers(); live != nullptr) {
    const HeldBuffer bias = widened_bias(expert, program);
    if (bias.bytes.value > 0) live->meanwhile(bias);
  }
  multiply(expert, program);
}

void backward_input(const ExpertLinear& expert, OperatorProgram& program) {
  program.acquire_input_gradients();
  multiply(expert, program);
}

void backward_weight(const ExpertLinear& expert, OperatorProgram& program) {
  multiply(expert, program);
}

double multiply_adds(const ExpertLinear& expert, std::int64_t /*sequence_length*/) {
  return static_cast<double>(expert.experts_per_token) * static_cast<double>(expert.in) *
         static_cast<double>(expert.out);
}

}  // namespace meshwright
