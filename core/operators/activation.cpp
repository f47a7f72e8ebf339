// Activation functions, element by element; SwiGLU reads a gate and a value.
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

Routine routine_of(const Activation& activation) {
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

}  // namespace

void forward(const Activation& activation, OperatorProgram& program) {
  program.acquire_outputs();
  program.elementwise(routine_of(activation));
}

void backward_input(const Activation& activation, OperatorProgram& program) {
  program.acquire_input_gradients();
  program.elementwise(routine_of(activation));
}

}  // namespace meshwright
