/// The tree of the search: what a node stands for, and how it is divided into children with higher
/// bounds until a candidate is left to simulate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/search/candidate_costs.hpp"
#include "planner/search/incumbents.hpp"
#include "planner/search/memory_screen.hpp"

namespace meshwright {

/// The indices of choices that are not made yet are -1.
struct Node {
  Ticks bound;  ///< of the simulated step time of everything below
  std::int32_t branch = -1;
  std::int16_t pipeline = -1, recompute = -1, replication = -1;
  bool is_timed = false;    ///< a pipeline: the bound is at least the makespan of the schedule
  bool is_checked = false;  ///< a candidate: it is valid, its blocks are chosen, its end is counted
  int blocks = 0;           ///< recomputed blocks of a checked candidate
  /// A layout: the candidates below that were postponed when it was divided, and the step time up
  /// to which bounds were not.
  std::int64_t postponed = 0;
  Ticks divided_up_to = {};
  std::size_t order = 0;  ///< of creation; breaks ties between equal bounds
};

/// What came of a node.
struct NodeOutcome {
  std::vector<Node> children;  ///< or the node itself with a higher bound
  std::array<std::int64_t, kPruneReasonCount> pruned{};
  std::optional<Ticks> step_time;            ///< it was simulated
  std::int64_t tasks = 0;                    ///< that were lowered and simulated
  std::optional<MemoryShortfall> shortfall;  ///< of the candidate
  Candidate candidate;                       ///< with `step_time` or `shortfall`

  void prune(PruneReason reason, std::int64_t count = 1);
  /// Of candidates that do not fit, keeps the one that needs the least.
  void note(const Candidate& lacking, const MemoryShortfall& found);
};

/// Refers to the job, the space and the incumbents, which do not change during a call of judge().
class Branching {
 public:
  Branching(const SearchJob& job, const SearchSpace& space, const Incumbents& incumbents);

  /// A lower bound of everything below a layout. May be called from several threads, as judge().
  Ticks bound_of(const SearchSpace::Branch& branch);
  /// Bounds, divides or simulates a node.
  NodeOutcome judge(const Node& node);

  bool is_beaten(const Node& node) const;
  /// True if plan 1 is faster than everything below, which other rows of the table may still need.
  bool is_late(const Node& node) const;
  /// From now on nodes below a layout are not postponed if they are late.
  void search_rows() { postpones_ = false; }
  std::int64_t candidates_below(const Node& node) const;
  const Layout& layout_of(const Node& node) const { return branch_of(node).layout; }
  /// A candidate with this replication and the recomputation that keeps the least, with the first
  /// schedule that the replication suits.
  Candidate leanest_below(const SearchSpace::Branch& branch, const Replication& replication) const;
  CandidateCosts& costs() { return costs_; }

 private:
  const SearchSpace::Branch& branch_of(const Node& node) const;
  const PipelineChoice& pipeline_of(const Node& node) const;
  Candidate candidate_of(const Node& node) const;

  /// Layers and bounds of the pipelines of one layout with one way of recomputation.
  class Pipelines;

  NodeOutcome divide_layout(const Node& node);
  bool was_divided(const Node& layout, const Node& child, Pipelines& pipelines);
  void bound_pipeline(Node& node, Pipelines& pipelines, NodeOutcome& outcome);
  NodeOutcome time_pipeline(const Node& node);
  NodeOutcome divide_pipeline(const Node& node);
  NodeOutcome check_candidate(const Node& node);
  NodeOutcome simulate_candidate(const Node& node);

  const Replication* leanest_replication(const SearchSpace::Branch& branch,
                                         const PipelineChoice& pipeline) const;
  Ticks bound_with_blocks(const Node& node, const Candidate& candidate);
  bool choose_blocks(Candidate& candidate, int least, bool rough, NodeOutcome& outcome);

  const SearchJob& job_;
  const SearchSpace& space_;
  const Incumbents& incumbents_;
  CandidateCosts costs_;
  MemoryScreen screen_;
  bool postpones_ = true;
};

}  // namespace meshwright
