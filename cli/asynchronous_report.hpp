/// How often workers of an asynchronous parameter server update, and how old their weights are.
#pragma once

#include <span>
#include <string>

#include "core/cost_model.hpp"
#include "core/plan.hpp"
#include "core/task_graph.hpp"

namespace meshwright {

/// Empty for plans of another kind. The graph is one turn of every worker; its prices are carried
/// through many turns.
std::string asynchronous_text(const Strategy& strategy, const TaskGraph& graph,
                              std::span<const WorkPrice> prices);

}  // namespace meshwright
