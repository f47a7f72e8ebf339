/// Exact search for small networks: Giffler-Thompson branching with constraint propagation.
#pragma once

#include <cstdint>

#include "planner/synthesis/constraint_propagation.hpp"
#include "planner/synthesis/schedule_construction.hpp"

namespace meshwright {

struct BranchingOutcome {
  Starts starts;  ///< the best schedule known
  Ticks bound;    ///< lower bound of the objective; equal to its value if the search is complete
  std::int64_t nodes = 0;
};

/// Every node of the search tree fixes the next operation of a machine: one that can start before
/// the earliest possible end of any open operation of that machine (active schedules, which include
/// an optimal one). Only for networks without caps.
class ScheduleBranching {
 public:
  explicit ScheduleBranching(const OperationNetwork& network);

  /// Visits at most `most_nodes` nodes.
  BranchingOutcome improve(Starts known, Ticks bound, std::int64_t most_nodes);

 private:
  enum class Verdict : std::uint8_t { kExhausted, kImproved, kStopped };
  struct Node {
    std::vector<Ticks> earliest, latest;
    std::vector<char> is_placed;
  };

  Verdict descend(Node node, int placed);
  bool narrow(Node& node);

  const OperationNetwork& network_;
  ConstraintPropagation propagation_;
  Starts found_;
  std::int64_t nodes_left_ = 0;
};

}  // namespace meshwright
