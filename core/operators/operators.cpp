#include "core/operators/operators.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {

bool has_weight_gradient(const OperatorShape& shape) {
  return std::visit([]<class Shape>(const Shape&) { return HasWeightGradient<Shape>; }, shape);
}

bool has_gradient_with_inputs(const ModelGraph& model, TensorId parameter) {
  return std::ranges::any_of(model.operators, [&](const Operator& op) {
    return !has_weight_gradient(op.shape) &&
           std::ranges::find(op.parameters, parameter) != op.parameters.end();
  });
}

void describe(OperatorProgram& program) {
  std::visit(
      [&]<class Shape>(const Shape& shape) {
        switch (program.phase()) {
          case Phase::kForward:
            return forward(shape, program);
          case Phase::kBackwardInput:
            return backward_input(shape, program);
          case Phase::kBackwardWeight:
            if constexpr (HasWeightGradient<Shape>) backward_weight(shape, program);
            return;
          case Phase::kUpdate:
            return;
        }
      },
      program.op().shape);
}

Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length) {
  const double tokens = static_cast<double>(sequences) * static_cast<double>(sequence_length);
  return std::visit(
      [&]<class Shape>(const Shape& shape) {
        if constexpr (requires { multiply_adds(shape, sequence_length); })
          return Flops(2.0 * tokens * multiply_adds(shape, sequence_length));
        else
          return Flops(0.0);
      },
      op.shape);
}

std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase) {
  MW_CHECK(op.value >= 0 && op.index() < model.operators.size());
  const auto after = std::ranges::upper_bound(model.layers, op.value, {}, &Layer::first_operator);
  MW_CHECK(after != model.layers.begin());
  const LayerId layer(static_cast<std::int32_t>(std::prev(after) - model.layers.begin()));
  const JobGroups alone;  // groups of one rank: no collectives
  const LayerContext context(model, layer, shard, alone);
  std::vector<Step> steps;
  OperatorProgram program(context, steps, nullptr);
  program.begin(op.value - context.layer.first_operator, phase);
  describe(program);
  std::vector<Kernel> kernels;
  kernels.reserve(steps.size());
  for (const Step& step : steps) kernels.push_back(std::get<Kernel>(step));
  return kernels;
}

}  // namespace meshwright
