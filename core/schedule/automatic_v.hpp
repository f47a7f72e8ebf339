/// Cost-driven schedules with two chunks in a V: zb-v, v-half and v-min with given times.
#pragma once

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Returns the pattern, unless the request has times (or a cap) and a schedule with the same
/// placement is faster with them (period first, then makespan) and holds at most `own_cap`
/// micro-batches of a whole device (or the request's cap). Keeps the pattern's name.
Schedule shortest_v(Schedule pattern, const ScheduleRequest& request, double own_cap);

}  // namespace meshwright
