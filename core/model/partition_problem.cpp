#include "core/model/partition_problem.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"

namespace meshwright {
namespace {

std::string place_of_edge(const std::string& where, std::size_t edge) {
  return fmt::format("{}#/edges/{}", where, edge);
}

void check_edges(const PartitionProblem& problem, const std::string& where) {
  const auto count = static_cast<std::int32_t>(problem.nodes.size());
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    const auto [source, target] = problem.edges[e];
    if (source < 0 || source >= count || target < 0 || target >= count)
      throw InputError({place_of_edge(where, e),
                        fmt::format("edge from node {} to node {} of {}", source, target, count),
                        "refer to existing nodes"});
    const PartitionNode& from = problem.nodes[static_cast<std::size_t>(source)];
    const PartitionNode& to = problem.nodes[static_cast<std::size_t>(target)];
    if (from.is_backward && !to.is_backward)
      throw InputError({place_of_edge(where, e),
                        fmt::format("edge from the backward node '{}' to the forward node '{}'",
                                    from.name, to.name),
                        "remove it, or mark both as backward nodes"});
  }
}

}  // namespace

std::optional<std::size_t> find_node_after_cycle(std::size_t node_count,
                                                 const std::vector<PartitionEdge>& edges) {
  std::vector<std::vector<std::int32_t>> readers(node_count);
  std::vector<std::int32_t> missing(node_count, 0), ready;
  for (const PartitionEdge& edge : edges) {
    readers[static_cast<std::size_t>(edge.source)].push_back(edge.target);
    ++missing[static_cast<std::size_t>(edge.target)];
  }
  for (std::size_t v = 0; v < missing.size(); ++v)
    if (missing[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  for (std::size_t i = 0; i < ready.size(); ++i)
    for (const std::int32_t reader : readers[static_cast<std::size_t>(ready[i])])
      if (--missing[static_cast<std::size_t>(reader)] == 0) ready.push_back(reader);
  for (std::size_t v = 0; v < missing.size(); ++v)
    if (missing[v] > 0) return v;
  return std::nullopt;
}

void refuse_cycle(const std::string& where, std::size_t node, const std::string& name) {
  throw InputError({fmt::format("{}#/nodes/{}", where, node),
                    fmt::format("node '{}' depends on a cycle", name),
                    "remove an edge of the cycle: the graph must be acyclic"});
}

void check_partition_problem(const PartitionProblem& problem, const std::string& where) {
  if (problem.nodes.empty())
    throw InputError({where, "the graph has no nodes", "give at least one node"});
  check_edges(problem, where);
  if (const auto node = find_node_after_cycle(problem.nodes.size(), problem.edges))
    refuse_cycle(where, *node, problem.nodes[*node].name);
}

}  // namespace meshwright
