/// The tasks of one pipeline, ordered by its schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Tasks of one pipeline in topological order; Task::rank is the pipeline rank.
struct PipelineTasks {
  std::vector<std::int32_t> last_of_stage;   ///< by stage: its last compute task
  std::vector<std::int32_t> last_of_device;  ///< by pipeline rank
  /// By stage, then unit: the task that completes the unit's gradients: its backward pass, or the
  /// reduction after it (ZeRO 2, 3). Empty for stages whose last backward pass is a single task.
  std::vector<std::vector<std::int32_t>> completes_unit;
};
TaskKind task_kind_of(Pass pass);

}  // namespace meshwright
