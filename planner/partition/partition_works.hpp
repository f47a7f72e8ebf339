/// What the stages of a partition compute and hold: their passes in units of about a layer, and the
/// update of their weights.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/partition/lower_partition.hpp"

namespace meshwright {

/// Consecutive nodes of a stage. Buffers of the works are the saved tensors, and for recomputation
/// those that are computed again.
struct StageUnit {
  Work forward, backward;
  std::int64_t parameters = 0;  ///< that its kernels read
};

struct PartitionStageWorks {
  std::vector<StageUnit> units;
  std::int64_t parameters = 0;
  std::int64_t summed_parameters = 0;  ///< see KernelGraphNode
};

/// Of stage `s`. Appends their parts to `graph`.
PartitionStageWorks partition_stage_works(const LoweredPartition& partition, std::size_t s,
                                          TaskGraph& graph);

/// All units one after the other, in either direction.
Work whole_pass(const std::vector<StageUnit>& units, bool is_forward);

/// AdamW on `updated` parameters after their norm and clipping, and clearing `held` gradients.
/// Before it the sum of gradients over tensor-parallel devices, if there is one.
Work partition_update_work(const Strategy& strategy, std::int64_t updated, std::int64_t held,
                           const std::optional<Collective>& sum, TaskGraph& graph);

}  // namespace meshwright
