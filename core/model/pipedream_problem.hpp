/// An operator graph to be cut into replicated pipeline stages on a hierarchy of links (Narayanan
/// et al., "PipeDream", SOSP 2019).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/model/partition_problem.hpp"

namespace meshwright {

struct PipeDreamNode {
  std::string name;
  Seconds time;      ///< forward and backward, per minibatch
  Bytes activation;  ///< its output, per minibatch
  Bytes parameters;
  friend bool operator==(const PipeDreamNode&, const PipeDreamNode&) = default;
};

/// `size` groups of the level below, or devices on the first level, joined by links.
struct PipeDreamLevel {
  int size = 1;
  BytesPerSecond bandwidth;
  friend bool operator==(const PipeDreamLevel&, const PipeDreamLevel&) = default;
};

/// The edges form a DAG.
struct PipeDreamProblem {
  std::vector<PipeDreamNode> nodes;
  std::vector<PartitionEdge> edges;
  std::vector<PipeDreamLevel> levels;  ///< from devices outward; files have none
  friend bool operator==(const PipeDreamProblem&, const PipeDreamProblem&) = default;
};

/// Limits of problems read from files and flags.
inline constexpr std::size_t kMostPipeDreamNodes = 2048;
inline constexpr std::size_t kMostPipeDreamEdges = 16 * kMostPipeDreamNodes;
inline constexpr std::size_t kMostPipeDreamLevels = 3;
inline constexpr int kLargestPipeDreamLevel = 256;

/// Throws InputError for graphs without nodes and for cycles.
void check_pipedream_problem(const PipeDreamProblem& problem, const std::string& where);

}  // namespace meshwright
