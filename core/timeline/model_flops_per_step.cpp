#include <variant>

#include "core/operators/operators.hpp"
#include "core/timeline/evaluation.hpp"

namespace meshwright {
namespace {

bool is_matrix_multiplication(const Operator& op) {
  return std::holds_alternative<Linear>(op.shape) || std::holds_alternative<Attention>(op.shape) ||
         std::holds_alternative<Router>(op.shape) || std::holds_alternative<ExpertLinear>(op.shape);
}

}  // namespace

Flops model_flops_per_step(const ModelGraph& model, const Strategy& strategy) {
  constexpr double kForwardAndBackward = 3;  // one forward, two for both gradients
  Flops forward;
  for (const Operator& op : model.operators)
    if (is_matrix_multiplication(op))
      forward += forward_flops(op, strategy.global_batch, strategy.sequence_length);
  return forward * kForwardAndBackward;
}

}  // namespace meshwright
