/// Update rate and staleness with an asynchronous parameter server.
#pragma once

#include <span>
#include <string>

#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// Empty for other plans. The graph has one iteration of every worker; the simulation repeats it.
std::string asynchronous_text(const Strategy& strategy, const TaskGraph& graph,
                              std::span<const WorkPrice> prices);

}  // namespace meshwright
