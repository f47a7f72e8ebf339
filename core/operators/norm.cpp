// Layer norm (arXiv 1607.06450) or RMS norm (arXiv 1910.07467) over the last axis of x [B, T, H].
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

Routine routine_of(const Norm& norm) {
  return norm.kind == NormKind::kRmsNorm ? Routine::kRmsNorm : Routine::kLayerNorm;
}

}  // namespace

void forward(const Norm& norm, OperatorProgram& program) {
  program.acquire_outputs();
  program.elementwise(routine_of(norm));
}

void backward_input(const Norm& norm, OperatorProgram& program) {
  program.acquire_input_gradients();
  program.elementwise(routine_of(norm));
}

}  // namespace meshwright
