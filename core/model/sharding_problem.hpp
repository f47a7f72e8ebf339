/// The choice of a sharding strategy per operator, with costs of operators and of resharding
/// between them, and a limit on the memory in use at any time (Alpa, arXiv 2201.12023, section 4.2,
/// as posed by the ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism, IOPDDL).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace meshwright {

/// Of a node or edge: the strategies do not go together.
inline constexpr std::int64_t kForbiddenCost = 1'000'000'000'000'000'000;

struct ShardingNode {
  std::int64_t begin = 0, end = 0;          ///< in use at the times [begin, end)
  std::vector<std::int64_t> costs, usages;  ///< by strategy, at least one
  friend bool operator==(const ShardingNode&, const ShardingNode&) = default;
};

struct ShardingEdge {
  std::int32_t first = 0, second = 0;  ///< nodes
  std::vector<std::int64_t> costs;     ///< by strategy of the first node, then of the second
  friend bool operator==(const ShardingEdge&, const ShardingEdge&) = default;
};

/// Minimize the sum of all costs such that the usages at any time sum up to at most `usage_limit`.
struct ShardingProblem {
  std::string name;
  std::vector<ShardingNode> nodes;
  std::vector<ShardingEdge> edges;
  std::optional<std::int64_t> usage_limit;
  friend bool operator==(const ShardingProblem&, const ShardingProblem&) = default;
};

/// Limits of problems read from files.
inline constexpr std::size_t kMostShardingNodes = 1'000'000;
inline constexpr std::size_t kMostShardingStrategies = 4096;    ///< of a node
inline constexpr std::size_t kMostShardingCosts = 100'000'000;  ///< of all nodes and edges
inline constexpr std::int64_t kLargestShardingUsage = 1'000'000'000'000;  ///< of one strategy

}  // namespace meshwright
