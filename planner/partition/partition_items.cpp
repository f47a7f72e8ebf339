#include "planner/partition/partition_items.hpp"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include "core/base/check.hpp"
#include "core/base/indices.hpp"

namespace meshwright {
namespace {

using Index = std::int32_t;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

/// Groups of nodes: those of a group share a device.
class Groups {
 public:
  explicit Groups(std::size_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  void merge(Index a, Index b) { parent_[to_index(of(b))] = of(a); }
  Index of(Index node) {
    while (parent_[to_index(node)] != node) {
      parent_[to_index(node)] = parent_[to_index(parent_[to_index(node)])];  // halves the path
      node = parent_[to_index(node)];
    }
    return node;
  }

 private:
  std::vector<Index> parent_;
};

void merge_colocated(const PartitionProblem& problem, Groups& groups) {
  std::unordered_map<std::int64_t, Index> first;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const std::int64_t color = problem.nodes[v].colocation;
    if (color < 0) continue;
    const auto [it, is_new] = first.emplace(color, static_cast<Index>(v));
    if (!is_new) groups.merge(it->second, static_cast<Index>(v));
  }
}

/// Edges between groups that order them: of the forward graph, and the mirror image of the backward
/// graph at groups without forward nodes.
std::vector<std::pair<Index, Index>> ordering_edges(const PartitionProblem& problem, Groups& groups,
                                                    const std::vector<bool>& has_forward) {
  std::vector<std::pair<Index, Index>> edges;
  for (const PartitionEdge& edge : problem.edges) {
    Index from = groups.of(edge.source), to = groups.of(edge.target);
    if (from == to) continue;
    if (problem.nodes[to_index(edge.target)].is_backward) {
      if (!problem.nodes[to_index(edge.source)].is_backward) continue;
      if (has_forward[to_index(edge.source)] && has_forward[to_index(edge.target)]) continue;
      std::swap(from, to);
    }
    edges.emplace_back(from, to);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

/// By node: whether its group of colocated nodes has a forward node.
std::vector<bool> with_forward_nodes(const PartitionProblem& problem, Groups& groups) {
  std::vector<bool> of_group(problem.nodes.size(), false), result(problem.nodes.size());
  for (std::size_t v = 0; v < problem.nodes.size(); ++v)
    if (!problem.nodes[v].is_backward) of_group[to_index(groups.of(static_cast<Index>(v)))] = true;
  for (std::size_t v = 0; v < problem.nodes.size(); ++v)
    result[v] = of_group[to_index(groups.of(static_cast<Index>(v)))];
  return result;
}

void merge_cycles(const std::vector<std::pair<Index, Index>>& edges, Groups& groups,
                  std::size_t nodes) {
  const Graph graph(edges.begin(), edges.end(), nodes);
  std::vector<Index> component(nodes), first;
  const auto count = boost::strong_components(
      graph,
      boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, graph)));
  first.assign(static_cast<std::size_t>(count), -1);
  for (std::size_t v = 0; v < nodes; ++v) {
    Index& representative = first[to_index(component[v])];
    if (representative < 0)
      representative = static_cast<Index>(v);
    else
      groups.merge(representative, static_cast<Index>(v));
  }
}

/// True if one accelerator can hold all nodes.
bool fits_on_one(const PartitionProblem& problem) {
  Bytes memory;
  for (const PartitionNode& node : problem.nodes) memory += node.memory;
  return memory <= problem.accelerator_memory;
}

/// Merges each group without time and without edges to backward nodes into its only neighbor; not
/// if its memory may be missing there.
void merge_timeless(const PartitionProblem& problem,
                    const std::vector<std::pair<Index, Index>>& edges, Groups& groups) {
  const std::size_t count = problem.nodes.size();
  std::vector<std::set<Index>> neighbors(count);
  for (const auto& [from, to] : edges) {
    const Index a = groups.of(from), b = groups.of(to);
    if (a == b) continue;
    neighbors[to_index(a)].insert(b);
    neighbors[to_index(b)].insert(a);
  }
  std::vector<bool> stays(count, false);
  const bool ignores_memory = fits_on_one(problem);
  for (std::size_t v = 0; v < count; ++v) {
    const PartitionNode& node = problem.nodes[v];
    if (node.accelerator_time.value > 0 || node.host_time.value > 0 || !node.runs_on_accelerator ||
        (node.memory.value > 0 && !ignores_memory))
      stays[to_index(groups.of(static_cast<Index>(v)))] = true;
  }
  for (const PartitionEdge& edge : problem.edges)
    if (problem.nodes[to_index(edge.target)].is_backward &&
        !problem.nodes[to_index(edge.source)].is_backward)
      stays[to_index(groups.of(edge.source))] = true;
  std::vector<Index> candidates;
  for (std::size_t v = 0; v < count; ++v)
    if (neighbors[v].size() == 1) candidates.push_back(static_cast<Index>(v));
  while (!candidates.empty()) {
    const Index group = candidates.back();
    candidates.pop_back();
    if (neighbors[to_index(group)].size() != 1 || stays[to_index(group)]) continue;
    const Index neighbor = *neighbors[to_index(group)].begin();
    neighbors[to_index(group)].clear();
    neighbors[to_index(neighbor)].erase(group);
    groups.merge(neighbor, group);
    if (neighbors[to_index(neighbor)].size() == 1) candidates.push_back(neighbor);
  }
}

/// Numbers the groups in a topological order; ready groups are taken in the order of their nodes.
std::vector<Index> number_groups(std::size_t nodes, Groups& groups,
                                 const std::vector<std::pair<Index, Index>>& edges) {
  std::vector<std::vector<Index>> after(nodes);
  std::vector<Index> missing(nodes, 0), number(nodes, -1);
  for (const auto& [source, target] : edges) {
    const Index from = groups.of(source), to = groups.of(target);
    if (from != to) after[to_index(from)].push_back(to), ++missing[to_index(to)];
  }
  std::priority_queue<Index, std::vector<Index>, std::greater<>> ready;
  for (std::size_t v = 0; v < nodes; ++v)
    if (groups.of(static_cast<Index>(v)) == static_cast<Index>(v) && missing[v] == 0)
      ready.push(static_cast<Index>(v));
  Index next = 0;
  while (!ready.empty()) {
    const Index group = ready.top();
    ready.pop();
    number[to_index(group)] = next++;
    for (const Index reader : after[to_index(group)])
      if (--missing[to_index(reader)] == 0) ready.push(reader);
  }
  std::vector<Index> item_of_node(nodes);
  for (std::size_t v = 0; v < nodes; ++v) {
    item_of_node[v] = number[to_index(groups.of(static_cast<Index>(v)))];
    MW_CHECK(item_of_node[v] >= 0);
  }
  return item_of_node;
}

void add_signals(const PartitionProblem& problem, PartitionItems& result) {
  std::vector<std::vector<Index>> readers(problem.nodes.size());
  for (const PartitionEdge& edge : problem.edges) {
    const Index home = result.item_of_node[to_index(edge.source)];
    const Index reader = result.item_of_node[to_index(edge.target)];
    if (home != reader && problem.nodes[to_index(edge.source)].transfer_time.value > 0)
      readers[to_index(edge.source)].push_back(reader);
  }
  std::map<std::pair<Index, std::vector<Index>>, std::int64_t> time;
  for (std::size_t v = 0; v < readers.size(); ++v) {
    if (readers[v].empty()) continue;
    std::sort(readers[v].begin(), readers[v].end());
    readers[v].erase(std::unique(readers[v].begin(), readers[v].end()), readers[v].end());
    time[{result.item_of_node[v], readers[v]}] += problem.nodes[v].transfer_time.value;
  }
  for (const auto& [ends, total] : time)
    result.signals.push_back({.home = ends.first, .readers = ends.second, .time = total});
}

}  // namespace

PartitionItems make_partition_items(const PartitionProblem& problem) {
  const std::size_t nodes = problem.nodes.size();
  Groups groups(nodes);
  merge_colocated(problem, groups);
  const std::vector<bool> has_forward = with_forward_nodes(problem, groups);
  const auto edges = ordering_edges(problem, groups, has_forward);
  merge_cycles(edges, groups, nodes);
  merge_timeless(problem, edges, groups);

  PartitionItems result;
  result.item_of_node = number_groups(nodes, groups, edges);
  Index items = 0;
  for (const Index item : result.item_of_node) items = std::max(items, item + 1);
  result.items.resize(to_index(items));
  result.before.resize(to_index(items));
  result.after.resize(to_index(items));
  for (std::size_t v = 0; v < nodes; ++v) {
    PartitionItem& item = result.items[to_index(result.item_of_node[v])];
    const PartitionNode& node = problem.nodes[v];
    item.accelerator_time += node.accelerator_time.value;
    item.host_time += node.host_time.value;
    item.memory += node.memory.value;
    item.runs_on_accelerator = item.runs_on_accelerator && node.runs_on_accelerator;
  }
  std::set<std::pair<Index, Index>> pairs;
  for (const auto& [from, to] : edges) {
    const Index a = result.item_of_node[to_index(from)], b = result.item_of_node[to_index(to)];
    if (a != b && pairs.emplace(a, b).second) {
      result.after[to_index(a)].push_back(b);
      result.before[to_index(b)].push_back(a);
    }
  }
  add_signals(problem, result);
  return result;
}

PartitionItems chain_of_blocks(const PartitionItems& items) {
  constexpr std::int64_t kMostBlocks = 1024;
  std::int64_t total = 0, before = 0;
  const auto weight = [](const PartitionItem& item) { return item.accelerator_time + 1; };
  for (const PartitionItem& item : items.items) total += weight(item);
  const std::int64_t block_weight = total / kMostBlocks + 1;
  std::vector<std::int32_t> block_of_item;
  PartitionItems chain;
  for (const PartitionItem& item : items.items) {
    if (chain.items.empty() || before / block_weight != (before + weight(item)) / block_weight)
      chain.items.emplace_back();
    before += weight(item);
    PartitionItem& block = chain.items.back();
    block.accelerator_time += item.accelerator_time;
    block.host_time += item.host_time;
    block.memory += item.memory;
    block.runs_on_accelerator = block.runs_on_accelerator && item.runs_on_accelerator;
    block_of_item.push_back(static_cast<std::int32_t>(chain.items.size() - 1));
  }
  chain.before.resize(chain.items.size());
  chain.after.resize(chain.items.size());
  for (std::size_t block = 1; block < chain.items.size(); ++block) {
    chain.before[block].push_back(static_cast<std::int32_t>(block - 1));
    chain.after[block - 1].push_back(static_cast<std::int32_t>(block));
  }
  for (const std::int32_t item : items.item_of_node)
    chain.item_of_node.push_back(block_of_item[to_index(item)]);
  for (PartitionSignal signal : items.signals) {
    signal.home = block_of_item[to_index(signal.home)];
    for (std::int32_t& reader : signal.readers) reader = block_of_item[to_index(reader)];
    std::sort(signal.readers.begin(), signal.readers.end());
    signal.readers.erase(std::unique(signal.readers.begin(), signal.readers.end()),
                         signal.readers.end());
    std::erase(signal.readers, signal.home);
    if (!signal.readers.empty()) chain.signals.push_back(std::move(signal));
  }
  return chain;
}

}  // namespace meshwright
