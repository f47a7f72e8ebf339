/// What schedule generators share. The generators themselves are columns of the table in rules.cpp.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// An empty order per device, every micro-batch on route 0.
Schedule empty_schedule(std::string name, Placement placement, int microbatches);

/// The 1F1B order of one stage: `warm_up` forwards (at most m), then alternating forwards and
/// backwards, then the remaining backwards.
std::vector<Action> one_forward_one_backward(StageId stage, int microbatches, int warm_up);

/// The requested micro-batch group size, or p by default.
int microbatch_group_of(const ScheduleRequest& request);

}  // namespace meshwright
