/// Lowering of a layer class: kernels and collectives per pass.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/kernel.hpp"
#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_work.hpp"
#include "core/plan/job_groups.hpp"
#include "core/plan/plan.hpp"
#include "core/trainer/trainer_memory.hpp"

namespace meshwright {

/// Indices into the list of parts; `recompute` is -1 if the class has none.
struct LayerParts {
  std::int32_t forward = 0, backward = 0, backward_input = 0, backward_weight = 0;
  std::int32_t recompute = -1;
};
LayerParts append_layer_parts(const ModelGraph& model, LayerId layer, const Strategy& strategy,
                              const ShardShape& shard, const JobGroups& groups,
                              const TrainerMemory& memory, std::vector<WorkPart>& parts);

/// The site of a collective inside a layer.
struct Served {
  OperatorId op;
  Phase phase = Phase::kForward;
  TensorId tensor{-1};
};
/// Appends nothing for a group of one.
void append_collective(const Collective& collective, const Served& served,
                       std::vector<Step>& steps);

}  // namespace meshwright
