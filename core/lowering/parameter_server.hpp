/// Data parallelism with parameter servers: a full replica on every worker.
#pragma once

#include "core/cluster/cluster.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/stages.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// The complete graph including ranks: workers first, then servers.
TaskGraph lower_parameter_server(const StagesPass& pass, const Plan& plan, const Schedule& schedule,
                                 const DeviceModel& device, RankSet ranks);

}  // namespace meshwright
