// Embedding: rows of a [V, H] table for B T tokens. A table sharded by vocabulary looks up all
// tokens of the tensor group, and its outputs are summed over the tensor ranks; a replicated one
// looks up its own tokens.
#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

bool is_sharded(const ShardedOperator& program) {
  const std::vector<TensorId>& parameters = program.op().parameters;
  return !parameters.empty() &&
         parameter_of(program.model(), parameters.front()).cut == ParameterCut::kTensor;
}

std::int64_t looked_up_elements(const EmbeddingLookup& table, const ShardedOperator& program) {
  const LocalTokens& tokens = program.tokens();
  return (is_sharded(program) ? tokens.gathered : tokens.cut) * table.width;
}

}  // namespace

void forward(const EmbeddingLookup& table, OperatorProgram& program) {
  const bool leaves = program.is_cut() && is_sharded(program);
  program.acquire_outputs(/*partial=*/leaves);
  program.memory_bound(Routine::kEmbedding,
                       2 * looked_up_elements(table, program) * program.element());
  if (leaves) program.reduce_output(table.width);
}

void backward_input(const EmbeddingLookup& table, OperatorProgram& program) {
  if (program.is_cut() && is_sharded(program)) program.gather_output_gradient(table.width);
}

/// Reads the gradient and adds it to rows.
void backward_weight(const EmbeddingLookup& table, OperatorProgram& program) {
  const std::int64_t gradient = bytes_per_element(program.shard().precision.gradients);
  program.memory_bound(Routine::kEmbedding,
                       looked_up_elements(table, program) * (program.element() + 2 * gradient));
}

}  // namespace meshwright
