// Linear: y = x W + b with x [N, in], W [in, out]. Column-parallel layers read all tokens of the
// tensor group, row-parallel layers leave partial sums (Shoeybi et al., arXiv 1909.08053).

#include "core/operators/operators.hpp"

namespace meshwright {
namespace {

/// Vocabulary of the loss that reads the output: its logits are padded; -1: no loss.
std::int64_t vocabulary_after(const ShardedOperator& program) {
  constexpr std::size_t kReach = 2;  // operators from the logits to the loss
  const std::vector<Operator>& operators = program.model().operators;
  const std::size_t first = program.id().index();
  for (std::size_t i = first; i < operators.size() && i <= first + kReach; ++i)
    if (const auto* loss = std::get_if<CrossEntropy>(&operators[i].shape)) return loss->vocabulary;
  return -1;
}

/// Sharded layers process all tokens of the tensor group, replicated ones their own.
MatrixShape local_shape(const Linear& linear, const ShardedOperator& program) {
  const int ranks = program.tensor_ranks();
  const LocalTokens& tokens = program.tokens();
  MatrixShape shape{linear.cut == LinearCut::kReplicated ? tokens.cut : tokens.gathered, linear.out,
                    linear.in};
  if (linear.cut == LinearCut::kColumn)
    shape.n = linear.out == vocabulary_after(program)
                  ? padded_vocabulary(linear.out, ranks) / ranks
                  : local_columns(program.model(), program.op(), ranks);
  if (linear.cut == LinearCut::kRow) shape.k = divide_up(shape.k, ranks);
  return shape;
}

bool leaves(const Linear& linear, const ShardedOperator& program) {
  return program.is_cut() && linear.cut == LinearCut::kRow;
}

int pieces_of(const ShardedOperator& program, bool communicates) {
  return communicates && program.overlaps_product() ? program.tensor_ranks() : 1;
}

void acquire_input_gradients(const Linear& linear, OperatorProgram& program) {
  LiveBuffers* live = program.buffers();
  if (live == nullptr) return;
  if (!program.is_cut() || linear.cut != LinearCut::kColumn)
    return program.acquire_input_gradients();
  for (const TensorId in : program.op().inputs)
    if (const BufferKey sum = LiveBuffers::key(in, Form::kPartialGradient); !live->has(sum))
      live->acquire(sum, {live->gathered(in), MemoryClass::kWorking});
}

}  // namespace

void forward(const Linear& linear, OperatorProgram& program) {
  const MatrixShape shape = local_shape(linear, program);
  const bool sums = leaves(linear, program);
  program.cast_operands(shape, 1, linear.cut);
  program.gather_entering();
  program.acquire_outputs(/*partial=*/sums);
  program.product(shape, 1, pieces_of(program, sums || program.reads_entering_first()));
  if (sums) program.reduce_output(linear.out);
}

void backward_input(const Linear& linear, OperatorProgram& program) {
  const MatrixShape shape = local_shape(linear, program);
  const bool sums = leaves(linear, program);
  program.cast_operands(shape, 1, linear.cut);
  if (sums) program.gather_output_gradient(linear.out);
  acquire_input_gradients(linear, program);
  program.product(shape, 1, pieces_of(program, sums && program.shard().sequence_parallel));
  if (program.is_combined() && program.overlaps_gradient()) program.gather_entering_again(true);
  const int until_product = 1 + program.casts_before_weight_gradient(linear.cut);
  program.reduce_entering_gradients(program.is_combined() ? until_product : 0);
}

void backward_weight(const Linear& linear, OperatorProgram& program) {
  const MatrixShape shape = local_shape(linear, program);
  if (!program.is_combined() || !program.overlaps_gradient()) program.gather_entering_again(false);
  program.cast_operands(shape, 1, linear.cut);
  program.product(shape);
  if (linear.bias)  // column sums of the output's gradient
    program.memory_bound(Routine::kBias, shape.m * shape.n * program.element());
}

double multiply_adds(const Linear& linear, std::int64_t /*sequence_length*/) {
  return static_cast<double>(linear.in) * static_cast<double>(linear.out);
}

}  // namespace meshwright
