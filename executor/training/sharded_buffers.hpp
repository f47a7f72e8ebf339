/// Buffers of sharded parameters that exist during some passes only: gathered weights (ZeRO-3) and
/// gradients until they are reduced (ZeRO-2 and ZeRO-3).
#pragma once

#include <map>
#include <vector>

#include "executor/tasks/sharded_lifetimes.hpp"
#include "executor/training/rank_stages.hpp"

namespace meshwright {

class ShardedBuffers {
 public:
  ShardedBuffers(RankStages& stages, const RunnableGraph& runnable, const Strategy& strategy,
                 RankId rank);

  /// Identifies the layers whose passes use the gathered weights.
  int use_of(TaskId gather) const { return gathered_now().use_of(gather); }
  /// Until end_validation(), only the forward tasks of the rank run.
  void begin_validation() { validates_ = true; }
  void end_validation() { validates_ = false; }
  /// Opens the buffers of gradients that are reduced after the task.
  void open_gradients(TaskId task);
  /// Frees weights gathered for the layers of this pass only, and, if it is the last one that
  /// computes gradients, the buffers of those reduced meanwhile.
  void end_pass(TaskId id, TaskKind kind);
  void free_reduced_gradients();

 private:
  const GatheredWeights& gathered_now() const { return validates_ ? gathered_forward_ : gathered_; }

  RankStages& stages_;
  GatheredWeights gathered_, gathered_forward_;
  bool validates_ = false;
  std::map<std::int32_t, std::vector<ParameterRange>> reduced_after_;  ///< by task
};

}  // namespace meshwright
