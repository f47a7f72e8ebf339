// Activation functions, element by element; gated ones read a gate and a value.
#include "core/base/value_named.hpp"
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

Routine routine_of(const Activation& activation) {
  constexpr std::array kRoutines{Routine::kGelu,        Routine::kGelu,   Routine::kRelu,
                                 Routine::kSquaredRelu, Routine::kSwiGlu, Routine::kSwiGlu,
                                 Routine::kSwiGlu,      Routine::kSwiGlu, Routine::kSwiGlu};
  return entry_of(kRoutines, activation.kind);
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
