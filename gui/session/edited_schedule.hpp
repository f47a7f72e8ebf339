/// Manual edits of a schedule's orders, and their validation.
#pragma once

#include <optional>
#include <string>

#include "gui/session/simulation.hpp"
#include "gui/timeline/order_edit.hpp"

namespace meshwright::gui {

/// The simulation's schedule with one pass moved. Returns nullopt if the edit does not refer to a
/// pass of the schedule (the pieces of a split pass have no position of their own in the order).
std::optional<Schedule> edited_schedule(const Simulation& simulation, const OrderEdit& edit);

/// The reason why a plan cannot use these orders: the first problem found by check_schedule(), or a
/// placement that manual orders do not support. Empty if they are valid.
std::string problem_of_orders(const Simulation& simulation, const Schedule& schedule);

/// The scenario with the orders of a schedule; its degrees are adjusted. The schedule must pass
/// problem_of_orders(), or come from a schedule file with a single route.
Scenario with_orders(const Scenario& scenario, const Schedule& schedule);

}  // namespace meshwright::gui
