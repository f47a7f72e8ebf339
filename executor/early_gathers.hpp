/// Weights that are gathered for one use (ZeRO 3): when one thread gathers them, and how long they
/// stay. Gradients that are reduced behind one use (ZeRO 2 and 3).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/task_graph.hpp"

namespace meshwright {

/// One rank's tasks with its gathers of weights as early as they may start, beside the pass in
/// front of the one that waits for them: so long they take memory. All replicas move them alike,
/// and none past a task that it depends on.
std::vector<TaskId> with_early_gathers(const TaskGraph& graph, std::span<const TaskId> tasks);

class RunnableGraph;

/// What one rank gathers for which passes.
class GatheredWeights {
 public:
  GatheredWeights() = default;
  GatheredWeights(const RunnableGraph& runnable, RankId rank);
  /// Which layers' passes the gather is for, as a number.
  int use_of(TaskId gather) const;
  struct Piece {
    ParameterRange range;
    int use = 0;
  };
  /// What no later pass needs before it is gathered again.
  std::span<const Piece> last_used_by(TaskId pass) const;

 private:
  std::map<std::int32_t, int> use_of_gather_;             ///< by task
  std::map<std::int32_t, std::vector<Piece>> last_used_;  ///< by task
};

/// Gradients of one rank whose buffers a backward pass needs, as they are reduced behind it: by
/// task.
std::map<std::int32_t, std::vector<ParameterRange>> reduced_behind(const RunnableGraph& runnable,
                                                                   RankId rank);

}  // namespace meshwright
