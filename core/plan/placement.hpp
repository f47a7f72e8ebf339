/// Which layers are on which pipeline rank, and what a schedule is asked for.
#pragma once

#include <vector>

#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

ScheduleRequest schedule_request_of(const Strategy& strategy);
/// Number of model parts (see Placement::part_of_stage).
int part_count(const Placement& placement);

/// The placement of the plan's stages: the schedule's, or the manual one.
Placement placement_of(const Plan& plan);
/// The layers of each model part (see Placement::part_of_stage), first to last: the embedding is in
/// the first part, the head in the last, and blocks follow Plan::blocks_per_stage.
std::vector<std::vector<LayerId>> layers_of_parts(const Plan& plan, const ModelGraph& model);
/// The same by stage.
std::vector<std::vector<LayerId>> layers_of_stages(const Plan& plan, const ModelGraph& model);

}  // namespace meshwright
