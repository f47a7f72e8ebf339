/// Any text as a problem of IOPDDL. Small ones are searched.
#include "fuzz_reader.hpp"
#include "models/graphs/graph_files.hpp"
#include "planner/sharding/sharding_search.hpp"

namespace {

using namespace meshwright;

bool is_small(const ShardingProblem& problem) {
  constexpr std::size_t kMost = 2000;
  std::size_t costs = 0;
  for (const ShardingNode& node : problem.nodes) costs += node.costs.size();
  for (const ShardingEdge& edge : problem.edges) costs += edge.costs.size();
  return costs <= kMost;
}

void check_search(const ShardingProblem& problem) {
  const ShardingResult result = search_sharding(problem, {.steps = 40});
  MW_CHECK(result.lower_bound >= 0);
  if (!result.best) return;
  MW_CHECK(result.best->cost >= result.lower_bound);
  MW_CHECK(!problem.usage_limit || result.best->peak_usage <= *problem.usage_limit);
  MW_CHECK(evaluate_sharding(problem, result.best->strategies).cost == result.best->cost);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz_reader(data, size, [](std::string_view text) {
    const ShardingProblem problem =
        read_iopddl({.name = "g", .where = "g", .text = std::string(text)});
    for (const ShardingEdge& edge : problem.edges) {
      MW_CHECK(static_cast<std::size_t>(edge.first) < problem.nodes.size());
      MW_CHECK(static_cast<std::size_t>(edge.second) < problem.nodes.size());
    }
    if (is_small(problem)) check_search(problem);
  });
}
