#include "core/model/pipedream_problem.hpp"

#include "core/base/error.hpp"

namespace meshwright {

void check_pipedream_problem(const PipeDreamProblem& problem, const std::string& where) {
  if (problem.nodes.empty())
    throw InputError({where, "the graph has no nodes", "give at least one node"});
  if (const auto node = find_node_after_cycle(problem.nodes.size(), problem.edges))
    refuse_cycle(where, *node, problem.nodes[*node].name);
}

}  // namespace meshwright
