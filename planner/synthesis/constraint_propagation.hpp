/// Windows [earliest start, latest end] of operations for a target objective, narrowed by
/// precedences and by machines that process one operation at a time. An empty window proves that
/// the target cannot be met.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "planner/synthesis/operation_network.hpp"

namespace meshwright {

/// Sound filtering: precedences, detectable precedences and edge finding in O(n log n) per machine
/// with theta-lambda trees (P. Vilím, "O(n log n) filtering algorithms for unary resource
/// constraint", CPAIOR 2004), forward and backward in time, until nothing changes. Memory caps that
/// are not precedences (several stages per device) are ignored, which is sound.
class ConstraintPropagation {
 public:
  explicit ConstraintPropagation(const OperationNetwork& network);

  /// False proves that no schedule has an objective of `target` or less. True proves nothing; the
  /// windows are valid. Stops narrowing after about `most_visits` visits.
  bool could_meet(Ticks target, std::int64_t most_visits = kUnlimited);

  /// Valid after could_meet() returned true.
  const std::vector<Ticks>& earliest_starts() const { return earliest_; }
  const std::vector<Ticks>& latest_ends() const { return latest_; }

  /// Work done so far, in operations visited.
  std::int64_t visits() const { return visits_; }

 private:
  friend class ScheduleBranching;
  friend class ScheduleShaving;
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  struct TreeNode {
    Ticks work, end;                    ///< of the chosen operations: total work, earliest end
    Ticks work_with_one, end_with_one;  ///< maximum with one optional operation added
    std::int32_t work_owner = -1, end_owner = -1;  ///< leaf of that optional operation
  };

  /// Operations of one machine in the orders required by filtering. Reused between calls: windows
  /// change little, so sorting again is nearly free.
  struct SortedOperations {
    std::vector<std::int32_t> by_earliest, by_earliest_end, by_latest_start, by_latest_end;
    bool is_stale = true;  ///< a window changed since the machine was last narrowed
  };

  bool propagate(std::int64_t most_visits = kUnlimited);
  /// The same if only the window of one operation has changed since.
  bool propagate_from(std::int32_t operation, std::int64_t most_visits = kUnlimited);
  bool narrow(std::int64_t most_visits);
  bool follow_precedences();
  void mark_stale(std::size_t machine);
  void resort(std::vector<std::int32_t>& operations, const std::vector<Ticks>& times,
              bool minus_duration, bool plus_duration);
  bool narrow_stale(std::vector<SortedOperations>& machines, std::vector<Ticks>& earliest,
                    const std::vector<Ticks>& latest, bool& moved);
  bool narrow_machine(SortedOperations& sorted, std::vector<Ticks>& earliest,
                      const std::vector<Ticks>& latest, bool& moved);
  void find_detectable_precedences(const SortedOperations& sorted,
                                   const std::vector<Ticks>& earliest,
                                   const std::vector<Ticks>& latest);
  bool find_edges(const SortedOperations& sorted, const std::vector<Ticks>& earliest,
                  const std::vector<Ticks>& latest);

  enum class Role : std::uint8_t { kAbsent, kChosen, kOptional };
  void set_leaf(std::size_t leaf, Ticks earliest, Ticks duration, Role role);
  void clear_tree(std::size_t leaves);
  static TreeNode joined(const TreeNode& left, const TreeNode& right);

  const OperationNetwork& network_;
  std::vector<Ticks> earliest_, latest_, mirrored_earliest_, mirrored_latest_;
  std::vector<SortedOperations> forwards_, backwards_;  ///< by machine, for both time directions
  std::int64_t visits_ = 0;
  // Scratch space of narrow_machine().
  std::vector<std::pair<Ticks, std::int32_t>> keyed_;
  std::vector<std::int32_t> leaf_of_;
  std::vector<Ticks> raised_;  ///< by leaf
  std::vector<TreeNode> tree_;
  std::size_t leaves_ = 1;
};

}  // namespace meshwright
