#include "executor/operators/sequence_pieces.hpp"

namespace meshwright {

std::vector<SequencePiece> sequence_pieces(const Strategy& strategy, int context_rank) {
  const std::int64_t ranks = strategy.degrees.context;
  const std::int64_t local = strategy.sequence_length / ranks;
  if (ranks == 1 || strategy.model_parallelism.context == ContextAlgorithm::kAllToAll)
    return {{0, context_rank * local, local}};
  const std::int64_t half = local / 2;
  return {{0, context_rank * half, half}, {half, (2 * ranks - 1 - context_rank) * half, half}};
}

}  // namespace meshwright
