/// Plans whose stages are assigned to devices by hand (Plan::device_of_stage).
#pragma once

#include "core/plan/plan.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// The placement given by Plan::device_of_stage.
Placement manual_placement(const Plan& plan);
/// naive: a micro-batch runs forward and backward through all stages before the next one starts.
/// gpipe: each device runs all forwards of its first stage, then of its next, and so on, then the
/// backwards in reverse order.
Schedule manual_schedule(const Plan& plan);

}  // namespace meshwright
