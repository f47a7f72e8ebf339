/// The process groups of a plan, for NCCL.
#pragma once

#include "executor/tasks/runnable_graph.hpp"
#include "executor/transport/nccl_communicator.hpp"

namespace meshwright {

/// Collects them from a plan's collectives, sends and rings.
NcclGroups nccl_groups_of(const RunnableGraph& runnable, const Strategy& strategy);

}  // namespace meshwright
