/// Orders of a schedule changed by hand, and whether they are still sound.
#pragma once

#include <optional>
#include <string>

#include "gui/simulation.hpp"
#include "gui/timeline_order_edit.hpp"

namespace meshwright::gui {

/// The simulation's orders with one pass moved. Nothing if the edit names no pass of them (passes
/// that are cut have no place in the order of their own).
std::optional<Schedule> edited_schedule(const Simulation& simulation, const OrderEdit& edit);

/// Why a plan cannot have these orders: the first fault of check_schedule(), or a placement that
/// orders by hand cannot have. Empty: it can.
std::string problem_of_orders(const Simulation& simulation, const Schedule& schedule);

/// The scenario with the orders of a schedule; degrees follow it. The schedule must be one that
/// problem_of_orders() finds nothing wrong with, or come from a file of one route.
Scenario with_orders(const Scenario& scenario, const Schedule& schedule);

}  // namespace meshwright::gui
