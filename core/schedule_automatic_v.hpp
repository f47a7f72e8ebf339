/// Schedules of two chunks in a V by their costs: what zb-v, v-half and v-min become when times are
/// given.
#pragma once

#include "core/schedule.hpp"

namespace meshwright {

/// The pure pattern, unless the request has times (or a cap) and a schedule of the same placement
/// is shorter by them - period first, then makespan - without holding more than `own_cap`
/// micro-batches of a whole device, or the request's cap. Keeps the pattern's name.
Schedule shortest_v(Schedule pattern, const ScheduleRequest& request, double own_cap);

}  // namespace meshwright
