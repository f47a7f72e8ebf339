/// Down-sets at which a graph of PipeDream can be cut.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/pipedream_problem.hpp"

namespace meshwright {

/// Sums over the nodes of a down-set.
struct PipeDreamCut {
  std::vector<std::uint64_t> nodes;  ///< bits
  std::int64_t size = 0;
  double time = 0, parameters = 0;
  double crossing = 0;  ///< bytes of activations that nodes outside read

  bool contains(std::size_t node) const { return (nodes[node / 64] >> (node % 64)) & 1U; }
  bool contains(const PipeDreamCut& other) const {
    for (std::size_t word = 0; word < nodes.size(); ++word)
      if ((other.nodes[word] & ~nodes[word]) != 0) return false;
    return true;
  }
};

/// By size: the empty set first, the whole graph last.
using PipeDreamCuts = std::vector<PipeDreamCut>;

/// Empty if there are more than `most`.
std::optional<PipeDreamCuts> all_cuts(const PipeDreamProblem& problem, std::size_t most);
/// The prefixes of two topological orders, by breadth and by depth.
PipeDreamCuts cuts_of_some_orders(const PipeDreamProblem& problem);

}  // namespace meshwright
