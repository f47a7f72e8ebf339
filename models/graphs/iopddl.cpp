#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"
#include "models/graphs/graph_files.hpp"
#include "models/graphs/graph_scanner.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLatestTime = 1'000'000'000'000'000;

struct IopddlReader : GraphScanner {
  using GraphScanner::GraphScanner;
  ShardingProblem problem;
  std::size_t cost_count = 0;
  std::vector<std::vector<std::int64_t>> costs, usages;
  std::vector<std::int64_t> times;  ///< begin and end of every node

  std::int64_t whole_up_to(std::int64_t largest) {
    const std::string_view text = scanner.number();
    const auto value = number_from_text<std::int64_t>(text);
    if (!value || *value < 0 || *value > largest)
      scanner.fail(fmt::format("expected a whole number from 0 to {}, got {}", largest, text));
    return *value;
  }
  std::vector<std::int64_t> numbers(std::int64_t largest) {
    std::vector<std::int64_t> values;
    for (bool more = scanner.enter_array(); more; more = scanner.next_element()) {
      values.push_back(whole_up_to(largest));
      if (++cost_count > kMostShardingCosts)
        refuse(fmt::format("more than {} costs and usages", kMostShardingCosts),
               "leave out strategies that others dominate");
    }
    return values;
  }
  void read_lists(std::vector<std::vector<std::int64_t>>& lists, std::int64_t largest) {
    for (bool more = scanner.enter_array(); more; more = scanner.next_element())
      lists.push_back(numbers(largest));
  }
  /// An array of pairs.
  void read_pairs(std::vector<std::int64_t>& pairs, std::int64_t largest) {
    for (bool more = scanner.enter_array(); more; more = scanner.next_element()) {
      const std::vector<std::int64_t> pair = numbers(largest);
      if (pair.size() != 2) scanner.fail(fmt::format("expected 2 numbers, got {}", pair.size()));
      pairs.insert(pairs.end(), pair.begin(), pair.end());
    }
  }
  void read_nodes();
  void read_edges();
  void read_problem();
  void add_nodes();
  void add_edges();
  std::vector<std::int64_t> ends;  ///< of every edge
  std::vector<std::vector<std::int64_t>> edge_costs;
};

void IopddlReader::read_nodes() {
  scanner.for_each_member([&](std::string_view key) {
    if (key == "intervals")
      read_pairs(times, kLatestTime);
    else if (key == "costs")
      read_lists(costs, INT64_MAX / 2);
    else if (key == "usages")
      read_lists(usages, kLargestShardingUsage);
    else
      scanner.skip();
  });
}

void IopddlReader::read_edges() {
  scanner.for_each_member([&](std::string_view key) {
    if (key == "nodes")
      read_pairs(ends, INT32_MAX);
    else if (key == "costs")
      read_lists(edge_costs, INT64_MAX / 2);
    else
      scanner.skip();
  });
}

void IopddlReader::read_problem() {
  scanner.for_each_member([&](std::string_view key) {
    if (key == "name")
      problem.name = scanner.text();
    else if (key == "nodes")
      read_nodes();
    else if (key == "edges")
      read_edges();
    else if (key == "usage_limit")
      problem.usage_limit = whole_up_to(INT64_MAX / 2);
    else
      scanner.skip();
  });
}

void IopddlReader::add_nodes() {
  if (costs.empty() || costs.size() > kMostShardingNodes)
    refuse(fmt::format("expected 1 to {} nodes, got {}", kMostShardingNodes, costs.size()),
           "give the costs of every node");
  if (usages.size() != costs.size() || times.size() != 2 * costs.size())
    refuse(fmt::format("{} nodes with costs, {} with usages, {} with intervals", costs.size(),
                       usages.size(), times.size() / 2),
           "give all three for every node");
  for (std::size_t v = 0; v < costs.size(); ++v) {
    if (costs[v].empty() || costs[v].size() != usages[v].size() ||
        costs[v].size() > kMostShardingStrategies)
      throw InputError(
          {place("nodes", v),
           fmt::format("{} costs and {} usages", costs[v].size(), usages[v].size()),
           fmt::format("give one of each per strategy, 1 to {}", kMostShardingStrategies)});
    problem.nodes.push_back(
        {times[2 * v], times[2 * v + 1], std::move(costs[v]), std::move(usages[v])});
  }
}

void IopddlReader::add_edges() {
  if (ends.size() != 2 * edge_costs.size())
    refuse(fmt::format("{} edges with nodes, {} with costs", ends.size() / 2, edge_costs.size()),
           "give both for every edge");
  const auto count = std::ssize(problem.nodes);
  for (std::size_t e = 0; e < edge_costs.size(); ++e) {
    const std::int64_t first = ends[2 * e], second = ends[2 * e + 1];
    if (first >= count || second >= count || first == second)
      throw InputError({place("edges", e), fmt::format("connects nodes {} and {}", first, second),
                        fmt::format("use two different nodes from 0 to {}", count - 1)});
    const std::size_t expected = problem.nodes[static_cast<std::size_t>(first)].costs.size() *
                                 problem.nodes[static_cast<std::size_t>(second)].costs.size();
    if (edge_costs[e].size() != expected)
      throw InputError({place("edges", e),
                        fmt::format("expected {} costs, got {}", expected, edge_costs[e].size()),
                        "give one per pair of strategies"});
    problem.edges.push_back({static_cast<std::int32_t>(first), static_cast<std::int32_t>(second),
                             std::move(edge_costs[e])});
  }
}

}  // namespace

ShardingProblem read_iopddl(const NamedText& file) {
  IopddlReader reader(file);
  bool has_problem = false;
  reader.scanner.for_each_member([&](std::string_view key) {
    if (key == "problem" && !has_problem)
      reader.read_problem(), has_problem = true;
    else
      reader.scanner.skip();
  });
  reader.scanner.expect_end();
  if (!has_problem) reader.refuse("missing key 'problem'", "give a problem of IOPDDL");
  reader.add_nodes();
  reader.add_edges();
  return std::move(reader.problem);
}

}  // namespace meshwright
