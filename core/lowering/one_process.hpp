/// Data parallelism in one process: a full replica on every device.
#pragma once

#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/lowering/stages.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// PyTorch's DataParallel: the complete graph including ranks.
TaskGraph lower_one_process(const StagesPass& pass, const Plan& plan, const ModelGraph& model,
                            RankSet ranks);

}  // namespace meshwright
