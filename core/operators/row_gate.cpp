// Row gate: y = sigmoid(g) x with one g per token (shared experts of Qwen MoE models).
#include "core/operators/operators.hpp"

namespace meshwright {

void forward(const RowGate& /*gate*/, OperatorProgram& program) {
  program.acquire_outputs();
  program.elementwise(Routine::kSwiGlu);
}

void backward_input(const RowGate& /*gate*/, OperatorProgram& program) {
  program.acquire_input_gradients();
  program.elementwise(Routine::kSwiGlu);
}

}  // namespace meshwright
