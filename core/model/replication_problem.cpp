#include "core/model/replication_problem.hpp"

#include "core/base/error.hpp"
#include "core/model/partition_problem.hpp"

namespace meshwright {

void check_replication_problem(const ReplicationProblem& problem, const std::string& where) {
  if (problem.nodes.empty())
    throw InputError({where, "the graph has no nodes", "give at least one node"});
  std::vector<PartitionEdge> edges;
  for (const ReplicationEdge& edge : problem.edges) edges.push_back({edge.source, edge.target});
  if (const auto node = find_node_after_cycle(problem.nodes.size(), edges))
    refuse_cycle(where, *node, problem.nodes[*node].name);
}

}  // namespace meshwright
