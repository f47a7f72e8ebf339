// Softmax cross-entropy over logits [N, V], whole or sharded over the tensor ranks: three forward
// sweeps (maximum, sum of exponentials, target), logits in the stored type and softmax in fp32.
#include "core/operators/operators.hpp"
#include "core/operators/saved_activations.hpp"

namespace meshwright {
namespace {

constexpr int kForwardSweeps = 3;

/// An unsharded output layer has the logits of this rank's own tokens.
std::int64_t local_logits(const ModelGraph& model, const Operator& loss, const ShardShape& shard) {
  const LocalTokens tokens = local_tokens(shard);
  const bool is_sharded = loss.inputs.empty() ||
                          activation_of(model, loss.inputs.front()).cut == ActivationCut::kFeatures;
  return (is_sharded ? tokens.gathered : tokens.cut) * local_words(model, loss, shard);
}

void sweep(OperatorProgram& program, int launches) {
  const std::int64_t scores = local_logits(program.model(), program.op(), program.shard());
  program.memory_bound(Routine::kCrossEntropy, scores * (program.element() + kFloat32Bytes),
                       launches);
}

/// All-reduces per token, in fp32: largest logit, then sum of exponentials and the target's logit.
void reduce_loss(OperatorProgram& program) {
  const Bytes one_per_token(program.tokens().gathered * kFloat32Bytes);
  for (const std::int64_t count : {1, 2}) {
    Collective sum;
    sum.axis = Axis::kTensor;
    sum.bytes = one_per_token * count;
    sum.group = program.layer().groups.tensor;
    program.communicate(sum, program.input());
  }
}

}  // namespace

void forward(const CrossEntropy& /*loss*/, OperatorProgram& program) {
  sweep(program, kForwardSweeps);
  const bool is_sharded = !program.op().inputs.empty() &&
                          program.activation(program.input()).cut == ActivationCut::kFeatures;
  if (is_sharded) reduce_loss(program);
}

void backward_input(const CrossEntropy& /*loss*/, OperatorProgram& program) {
  program.acquire_input_gradients();
  sweep(program, 1);
}

std::int64_t local_words(const ModelGraph& model, const Operator& loss, const ShardShape& shard) {
  const std::int64_t words = std::get<CrossEntropy>(loss.shape).vocabulary;
  if (loss.inputs.empty()) return words;
  const ActivationTensor& logits = activation_of(model, loss.inputs.front());
  if (logits.cut != ActivationCut::kFeatures) return words;
  return padded_vocabulary(words, shard.degrees.tensor) / shard.degrees.tensor;
}

LogitBytes logit_bytes(const ModelGraph& model, LayerId layer, const ShardShape& shard) {
  LogitBytes bytes;
  for (const Operator& op : operators_of(model, layer)) {
    const auto* loss = std::get_if<CrossEntropy>(&op.shape);
    if (loss == nullptr) continue;
    const std::int64_t count = local_logits(model, op, shard);
    bytes.values += Bytes(count * kFloat32Bytes);
    bytes.gradient += stored_element(shard.dtype) * count;
    bytes.sharded = local_words(model, op, shard) < loss->vocabulary;
  }
  return bytes;
}

}  // namespace meshwright
