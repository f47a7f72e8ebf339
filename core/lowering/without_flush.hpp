/// Updates between the passes of flushless schedules.
#pragma once

#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/lowering/folded_graph.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

struct LoweringContext;

/// Appends the reductions and the update of every batch (core/plan/weight_versions.hpp), both
/// tagged with the micro-batch that completes the batch.
class UpdatesWithoutFlush {
 public:
  explicit UpdatesWithoutFlush(LoweringContext& context);
  ~UpdatesWithoutFlush();
  /// Appends nothing unless `backward` (task `done`) completes a batch.
  void append_after(const Action& backward, int device, TaskId done);

 private:
  struct Stage;
  FoldedGraph& folded_;
  std::vector<Stage> stages_;
};

}  // namespace meshwright
