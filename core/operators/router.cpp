// Router: scores of E experts per token in fp32, and the choice of the top K. Replicated over the
// tensor ranks; under sequence parallelism each has its own tokens.
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

MatrixShape local_shape(const Router& router, const ShardedOperator& program) {
  return {program.tokens().cut, router.experts, router.hidden};
}

void choose_experts(const Router& router, OperatorProgram& program) {
  program.memory_bound(Routine::kRouting,
                       2 * program.tokens().cut * router.experts * kFloat32Bytes);
}

}  // namespace

void forward(const Router& router, OperatorProgram& program) {
  program.acquire_outputs();
  program.product(local_shape(router, program));
  choose_experts(router, program);
}

void backward_input(const Router& router, OperatorProgram& program) {
  if (LiveBuffers* live = program.buffers(); live != nullptr) {
    live->acquire_gradient(program.output());  // of the logits, as large as the scores
    live->acquire_gradient(program.input());
  }
  program.product(local_shape(router, program));
  choose_experts(router, program);
}

void backward_weight(const Router& router, OperatorProgram& program) {
  program.product(local_shape(router, program));
}

double multiply_adds(const Router& router, std::int64_t /*sequence_length*/) {
  return static_cast<double>(router.hidden) * router.experts;
}

}  // namespace meshwright
