/// The operators: the kernels, collectives and buffers of every pass. Declared from the list in
/// core/model/model_graph.hpp; a missing function is a link error.
///
/// An operator without a backward_weight() has no weights, or computes their gradients with those
/// of its inputs (norms).
#pragma once

#include <cstdint>
#include <vector>

#include "core/operators/operator_program.hpp"

namespace meshwright {

#define MESHWRIGHT_OPERATOR(Shape)                            \
  void forward(const Shape& shape, OperatorProgram& program); \
  void backward_input(const Shape& shape, OperatorProgram& program);
#define MESHWRIGHT_OPERATOR_WITH_WEIGHTS(Shape) \
  MESHWRIGHT_OPERATOR(Shape)                    \
  void backward_weight(const Shape& shape, OperatorProgram& program);
MESHWRIGHT_OPERATORS(MESHWRIGHT_OPERATOR, MESHWRIGHT_OPERATOR_WITH_WEIGHTS)
#undef MESHWRIGHT_OPERATOR_WITH_WEIGHTS
#undef MESHWRIGHT_OPERATOR

/// Multiply-adds per token of the unsharded operator's forward pass; others have none that count.
/// Attention counts all scores (no causal halving) but respects windows and chunks.
double multiply_adds(const Linear& linear, std::int64_t sequence_length);
double multiply_adds(const Attention& attention, std::int64_t sequence_length);
double multiply_adds(const Router& router, std::int64_t sequence_length);
double multiply_adds(const ExpertLinear& expert, std::int64_t sequence_length);

template <class Shape>
concept HasWeightGradient = requires(const Shape& shape, OperatorProgram& program) {
  backward_weight(shape, program);
};
/// True for operators with a separate weight-gradient phase.
bool has_weight_gradient(const OperatorShape& shape);

/// True for norm parameters and attention sinks: their gradients are computed together with the
/// input gradients, even if the backward pass is split. O(operators).
bool has_gradient_with_inputs(const ModelGraph& model, TensorId parameter);

/// Describes the operator of `program` in its phase.
void describe(OperatorProgram& program);

/// Forward FLOPs of the unsharded operator on B sequences of length T; a multiply-add counts as
/// two.
Flops forward_flops(const Operator& op, std::int64_t sequences, std::int64_t sequence_length);

/// The kernels that one rank launches for the operator in one phase, in order, with local shapes.
/// Operators without weights have their full backward in kBackwardInput, and so do norms (one
/// kernel computes both gradients). kUpdate has none: lower() updates all parameters of a rank at
/// once.
///
/// Weight gradients are accumulated (read and written) in Precision::gradients. Fused attention has
/// 2 GEMMs forward and 5 backward (arXiv 2205.14135, algorithm 4); standard attention 2 and 4, plus
/// a softmax over all scores, causal or not.
std::vector<Kernel> kernels_of(const ModelGraph& model, OperatorId op, const ShardShape& shard,
                               Phase phase);

}  // namespace meshwright
