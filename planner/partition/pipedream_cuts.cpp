#include "planner/partition/pipedream_cuts.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/indices.hpp"
#include "planner/partition/down_sets.hpp"

namespace meshwright {
namespace {

struct CutGraph {
  std::vector<std::vector<std::int32_t>> before, after;  ///< of each node, ascending
};

CutGraph graph_of(const PipeDreamProblem& problem) {
  CutGraph graph;
  graph.before.resize(problem.nodes.size());
  graph.after.resize(problem.nodes.size());
  for (const PartitionEdge& edge : problem.edges) {
    graph.before[to_index(edge.target)].push_back(edge.source);
    graph.after[to_index(edge.source)].push_back(edge.target);
  }
  for (auto* lists : {&graph.before, &graph.after})
    for (auto& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  return graph;
}

PipeDreamCut cut_of(std::vector<std::uint64_t> nodes, const PipeDreamProblem& problem,
                    const CutGraph& graph) {
  PipeDreamCut cut{.nodes = std::move(nodes)};
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    if (!cut.contains(v)) continue;
    ++cut.size;
    cut.time += problem.nodes[v].time.value;
    cut.parameters += static_cast<double>(problem.nodes[v].parameters.value);
    const auto& readers = graph.after[v];
    if (std::any_of(readers.begin(), readers.end(),
                    [&](std::int32_t reader) { return !cut.contains(to_index(reader)); }))
      cut.crossing += static_cast<double>(problem.nodes[v].activation.value);
  }
  return cut;
}

/// Topological; the next node is the first one that became ready, or the last one.
std::vector<std::int32_t> topological_order(const CutGraph& graph, bool by_depth) {
  std::vector<std::size_t> missing;
  std::vector<std::int32_t> ready, order;
  for (std::size_t v = 0; v < graph.before.size(); ++v) {
    missing.push_back(graph.before[v].size());
    if (missing[v] == 0) ready.push_back(static_cast<std::int32_t>(v));
  }
  while (!ready.empty()) {
    const auto next = by_depth ? ready.end() - 1 : ready.begin();
    order.push_back(*next);
    ready.erase(next);
    for (const std::int32_t reader : graph.after[to_index(order.back())])
      if (--missing[to_index(reader)] == 0) ready.push_back(reader);
  }
  return order;
}

void sort_and_unite(PipeDreamCuts& cuts) {
  const auto key = [](const PipeDreamCut& cut) { return std::tie(cut.size, cut.nodes); };
  std::sort(cuts.begin(), cuts.end(),
            [&](const PipeDreamCut& a, const PipeDreamCut& b) { return key(a) < key(b); });
  cuts.erase(std::unique(cuts.begin(), cuts.end(),
                         [](const auto& a, const auto& b) { return a.nodes == b.nodes; }),
             cuts.end());
}

}  // namespace

std::optional<PipeDreamCuts> all_cuts(const PipeDreamProblem& problem, std::size_t most) {
  const CutGraph graph = graph_of(problem);
  const auto sets = enumerate_down_sets(graph.before, graph.after, most);
  if (!sets) return std::nullopt;
  PipeDreamCuts cuts;
  for (std::size_t set = 0; set < sets->size(); ++set) {
    const auto words = sets->words(static_cast<std::int32_t>(set));
    cuts.push_back(cut_of({words.begin(), words.end()}, problem, graph));
  }
  return cuts;
}

PipeDreamCuts cuts_of_some_orders(const PipeDreamProblem& problem) {
  const CutGraph graph = graph_of(problem);
  constexpr std::size_t kBits = 64;
  PipeDreamCuts cuts;
  for (const bool by_depth : {false, true}) {
    std::vector<std::uint64_t> nodes(problem.nodes.size() / kBits + 1, 0);
    cuts.push_back(cut_of(nodes, problem, graph));
    for (const std::int32_t node : topological_order(graph, by_depth)) {
      nodes[to_index(node) / kBits] |= std::uint64_t{1} << (to_index(node) % kBits);
      cuts.push_back(cut_of(nodes, problem, graph));
    }
  }
  sort_and_unite(cuts);
  return cuts;
}

}  // namespace meshwright
