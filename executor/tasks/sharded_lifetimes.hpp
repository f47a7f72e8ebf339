/// Lifetimes of sharded data: when weights are gathered for a pass and freed again (ZeRO-3), and
/// which gradients are reduced after a pass (ZeRO-2 and ZeRO-3).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"

namespace meshwright {

class RunnableGraph;

/// The weights that one rank gathers, by the passes that use them.
class GatheredWeights {
 public:
  GatheredWeights() = default;
  /// `tasks`: of the rank, all or those of forward passes.
  GatheredWeights(const RunnableGraph& runnable, std::vector<TaskId> tasks);
  /// A number identifying the layers whose passes use the gathered weights.
  int use_of(TaskId gather) const;
  /// The first pass that uses the gathered weights; -1: not a gather for a pass.
  TaskId pass_of(TaskId gather) const;
  struct Piece {
    ParameterRange range;
    int use = 0;
  };
  /// Gathered weights that no later pass uses before they are gathered again.
  std::span<const Piece> last_used_by(TaskId pass) const;

 private:
  struct Gather {
    int use = 0;
    TaskId pass;
  };
  std::map<std::int32_t, Gather> gathers_;                ///< by task
  std::map<std::int32_t, std::vector<Piece>> last_used_;  ///< by task
};

/// By backward task: the gradients of one rank that are reduced after it, whose buffers it
/// therefore needs.
std::map<std::int32_t, std::vector<ParameterRange>> reduced_after(const RunnableGraph& runnable,
                                                                  RankId rank);

}  // namespace meshwright
