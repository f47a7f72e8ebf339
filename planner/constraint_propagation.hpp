/// Windows [earliest start, latest end] of operations under a target, narrowed by precedences and
/// by machines doing one thing at a time. An empty window proves that the target cannot be met.
#pragma once

#include <optional>
#include <vector>

#include "planner/operation_network.hpp"

namespace meshwright {

/// What "meeting the target" means.
enum class ScheduleObjective : std::uint8_t {
  kMakespan,  ///< last end of any device, the first start being 0
  kPeriod     ///< for every device: last end - first start
};

/// Implied reductions, all sound: precedence, detectable precedences and edge finding in
/// O(n log n) a machine with theta-lambda trees (P. Vilím, "O(n log n) filtering algorithms for
/// unary resource constraint", CPAIOR 2004), forwards and backwards in time, until nothing moves.
/// Caps that are no precedences (several stages per device) are not used: still sound.
class ConstraintPropagation {
 public:
  ConstraintPropagation(const OperationNetwork& network, ScheduleObjective objective);

  /// False: no schedule meets `target`. True: the windows are valid, which proves nothing.
  bool could_meet(Ticks target);

  /// After could_meet() was true.
  const std::vector<Ticks>& earliest_starts() const { return earliest_; }
  const std::vector<Ticks>& latest_ends() const { return latest_; }

 private:
  friend class ScheduleBranching;
  struct TreeNode {
    Ticks work, end;                    ///< of the chosen operations: total, earliest common end
    Ticks work_with_one, end_with_one;  ///< the same with the best one of the optional ones
    std::int32_t work_owner = -1, end_owner = -1;  ///< that optional operation's leaf
  };

  bool propagate();
  bool follow_precedences();
  bool follow_precedences_once();
  bool narrow_machine(const std::vector<std::int32_t>& operations, std::vector<Ticks>& earliest,
                      std::vector<Ticks>& latest, bool& moved);
  void find_detectable_precedences(const std::vector<Ticks>& earliest,
                                   const std::vector<Ticks>& latest);
  bool find_edges(const std::vector<Ticks>& earliest, const std::vector<Ticks>& latest);

  enum class Role : std::uint8_t { kAbsent, kChosen, kOptional };
  void set_leaf(std::size_t leaf, Ticks earliest, Ticks duration, Role role);
  void clear_tree(std::size_t leaves);
  static TreeNode joined(const TreeNode& left, const TreeNode& right);

  const OperationNetwork& network_;
  ScheduleObjective objective_;
  Ticks target_;
  std::vector<Ticks> earliest_, latest_, mirrored_earliest_, mirrored_latest_;
  // Scratch of narrow_machine.
  std::vector<std::int32_t> by_earliest_, order_;
  std::vector<std::int32_t> by_earliest_end_;
  std::vector<std::int32_t> leaf_of_;
  std::vector<Ticks> raised_;  ///< by leaf
  std::vector<TreeNode> tree_;
  std::size_t leaves_ = 1;
};

}  // namespace meshwright
