/// Lowering of token dispatch and combine.
#pragma once

#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/lowering/layers.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/operator_work.hpp"
#include "core/plan/job_groups.hpp"

namespace meshwright {

/// `rows` is the routed tensor that is communicated (backward: its gradient). Reaching means
/// towards the expert ranks, leaving means back to the token's own rank.
struct ExpertCall {
  const ActivationTensor& rows;
  Served served;
  const ShardShape& shard;
  const JobGroups& groups;
};
void append_reach_experts(const ExpertCall& call, std::vector<Step>& steps);
void append_leave_experts(const ExpertCall& call, std::vector<Step>& steps);

}  // namespace meshwright
