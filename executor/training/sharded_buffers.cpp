#include "executor/training/sharded_buffers.hpp"

#include "executor/tasks/forward_tasks.hpp"

namespace meshwright {

ShardedBuffers::ShardedBuffers(RankStages& stages, const RunnableGraph& runnable,
                               const Strategy& strategy, RankId rank)
    : stages_(stages) {
  if (strategy.zero >= 3) {
    gathered_ = GatheredWeights(runnable, runnable.tasks_of(rank));
    gathered_forward_ = GatheredWeights(runnable, forward_tasks(runnable, rank));
  }
  if (strategy.zero >= 2) reduced_after_ = reduced_after(runnable, rank);
}

void ShardedBuffers::open_gradients(TaskId task) {
  const auto found = reduced_after_.find(task.value);
  if (found == reduced_after_.end()) return;
  for (const ParameterRange& range : found->second) {
    ParameterRun& run = stages_.run_of(range);
    if (run.layout().shards_gradients) run.open_gradients(run.piece_at(range.first));
  }
}

void ShardedBuffers::end_pass(TaskId id, TaskKind kind) {
  for (const GatheredWeights::Piece& piece : gathered_now().last_used_by(id)) {
    ParameterRun& run = stages_.run_of(piece.range);
    if (run.layout().shards_weights) run.close_weights(run.piece_at(piece.range.first), piece.use);
  }
  if (kind == TaskKind::kBackward || kind == TaskKind::kBackwardWeight) free_reduced_gradients();
}

void ShardedBuffers::free_reduced_gradients() {
  for (RankStage& stage : stages_.all())
    if (stage.parameters)
      for (const bool expert : {false, true})
        stage.parameters->run(expert).free_reduced_gradients();
}

}  // namespace meshwright
