/// Which nodes of a heterogeneous cluster the plans use, and the best plan on every set of nodes.
#pragma once

#include <string>

#include "cli/plan/plan_search.hpp"
#include "cli/terminal/document.hpp"

namespace meshwright {

/// In rank order: "32 h100 + 32 a100".
std::string nodes_text(const std::vector<NodeGroup>& nodes);
/// The column "nodes". Empty on homogeneous clusters.
Table nodes_column(const PlanSearch& search);
/// Table of the best plan on every set of nodes, and what plan 1 leaves unused. Empty on
/// homogeneous clusters.
Document node_comparison_text(const PlanSearch& search);
/// [{"nodes": [{"node": "h100", "count": 32}, …], "plan": {…} or null,
/// "proved_optimal": bool}, …]
std::string node_comparison_json(const PlanSearch& search);
/// The value of "nodes".
std::string nodes_json(const std::vector<NodeGroup>& nodes);

}  // namespace meshwright
