#include "planner/partition/replication_partition.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"
#include "planner/partition/replication_search.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;

}  // namespace

void price_stages(const ReplicationProblem& problem, std::vector<ReplicatedStage>& stages) {
  std::vector<std::size_t> stage_of(problem.nodes.size());
  std::int64_t sum_of_data = 0;
  for (std::size_t s = stages.size(); s-- > 0;) {
    sum_of_data += stages[s].data;
    stages[s].inflight = static_cast<int>(divide_up(sum_of_data, stages[s].data));
    for (const Index node : stages[s].nodes) stage_of[to_index(node)] = s;
  }
  const auto degree_index = [&](Index node) {
    const auto& degrees = problem.nodes[to_index(node)].degrees;
    std::size_t i = 0;
    while (degrees[i].degree != stages[stage_of[to_index(node)]].tensor) ++i;
    return i;
  };
  for (ReplicatedStage& stage : stages) {
    double time = 0, parameters = 0, memory = 0;
    for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
      const TensorParallelNode& node =
          problem.nodes[to_index(stage.nodes[i])].degrees[degree_index(stage.nodes[i])];
      const NodeVariant& variant = node.variants[to_index(stage.variant[i])];
      time += variant.time.value;
      parameters += number(node.parameters);
      memory += number(variant.memory_per_inflight) * stage.inflight + number(variant.memory);
    }
    const double reduced = 4 * (stage.data - 1) * parameters / stage.data / problem.microbatches;
    stage.time = Seconds(time / stage.data + reduced / problem.bandwidth.value);
    stage.memory = Bytes(static_cast<std::int64_t>(memory));
  }
  for (const ReplicationEdge& edge : problem.edges) {
    ReplicatedStage& from = stages[stage_of[to_index(edge.source)]];
    ReplicatedStage& to = stages[stage_of[to_index(edge.target)]];
    if (&from == &to) continue;
    const auto pay = [&](ReplicatedStage& stage, Bytes sync) {
      stage.time += Seconds(2 * (number(edge.transfer) + number(sync)) / stage.data /
                            problem.bandwidth.value);
    };
    pay(from, edge.source_sync[degree_index(edge.source)]);
    pay(to, edge.target_sync[degree_index(edge.target)]);
  }
}

namespace {

struct NodeNeighbors {
  std::vector<std::vector<Index>> before, after;  ///< of each node, ascending
};

NodeNeighbors neighbors_of(const ReplicationProblem& problem) {
  NodeNeighbors neighbors{.before = decltype(NodeNeighbors::before)(problem.nodes.size()),
                          .after = decltype(NodeNeighbors::after)(problem.nodes.size())};
  for (const ReplicationEdge& edge : problem.edges) {
    neighbors.before[to_index(edge.target)].push_back(edge.source);
    neighbors.after[to_index(edge.source)].push_back(edge.target);
  }
  for (auto* lists : {&neighbors.before, &neighbors.after})
    for (std::vector<Index>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  return neighbors;
}

/// A chain of all nodes in a topological order.
NodeNeighbors one_order(const NodeNeighbors& graph) {
  std::vector<std::size_t> missing;
  std::vector<Index> order;
  for (std::size_t v = 0; v < graph.before.size(); ++v) {
    missing.push_back(graph.before[v].size());
    if (missing[v] == 0) order.push_back(static_cast<Index>(v));
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const Index next : graph.after[to_index(order[i])])
      if (--missing[to_index(next)] == 0) order.push_back(next);
  NodeNeighbors chain{.before = decltype(NodeNeighbors::before)(order.size()),
                      .after = decltype(NodeNeighbors::after)(order.size())};
  for (std::size_t i = 1; i < order.size(); ++i) {
    chain.before[to_index(order[i])] = {order[i - 1]};
    chain.after[to_index(order[i - 1])] = {order[i]};
  }
  return chain;
}

}  // namespace

std::optional<ReplicationPartition> partition_with_replication(const ReplicationProblem& problem,
                                                               std::size_t most_down_sets) {
  const NodeNeighbors graph = neighbors_of(problem);
  if (const auto sets = enumerate_down_sets(graph.before, graph.after, most_down_sets)) {
    ReplicationSearch search(problem, *sets);
    if (search.list_stages()) return search.run();
  }
  const NodeNeighbors chain = one_order(graph);
  const auto sets = enumerate_down_sets(chain.before, chain.after, problem.nodes.size() + 1);
  MW_CHECK(sets.has_value());
  ReplicationSearch search(problem, *sets);
  MW_CHECK(search.list_stages());
  auto best = search.run();
  // Only the work bounds partitions of the graph, of which this search sees a part.
  if (best) best->lower_bound = std::min(best->time, search.least_time());
  return best;
}

}  // namespace meshwright
