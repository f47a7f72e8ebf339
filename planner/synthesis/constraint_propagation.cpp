#include "planner/synthesis/constraint_propagation.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {
namespace {
/// Earlier than any time; sums with real times do not overflow.
constexpr Ticks kNever(-(std::int64_t{1} << 61));
/// Limits of visits per propagation, against slow convergence; stopping early remains sound.
constexpr std::int64_t kMostVisits = 250'000, kMostVisitsPerOperation = 150;
}  // namespace

ConstraintPropagation::ConstraintPropagation(const OperationNetwork& network)
    : network_(network), leaf_of_(at(network.size())) {
  for (const auto& operations : network.of_machine)
    forwards_.push_back({operations, operations, operations, operations, true});
  backwards_ = forwards_;
}

bool ConstraintPropagation::could_meet(Ticks target, std::int64_t most_visits) {
  earliest_.resize(at(network_.size()));
  latest_.resize(at(network_.size()));
  for (std::size_t i = 0; i < earliest_.size(); ++i) {
    earliest_[i] = network_.release[at(network_.machine[i])];
    latest_[i] = target - network_.tail[at(network_.machine[i])];
  }
  return propagate(most_visits);
}

bool ConstraintPropagation::propagate(std::int64_t most_visits) {
  for (std::size_t machine = 0; machine < forwards_.size(); ++machine) mark_stale(machine);
  return narrow(most_visits);
}

bool ConstraintPropagation::propagate_from(std::int32_t operation, std::int64_t most_visits) {
  for (auto* machines : {&forwards_, &backwards_})
    for (SortedOperations& machine : *machines) machine.is_stale = false;
  mark_stale(at(network_.machine[at(operation)]));
  return narrow(most_visits);
}

bool ConstraintPropagation::narrow(std::int64_t most_visits) {
  if (!follow_precedences()) return false;
  const std::int64_t last_visit =
      visits_ +
      std::min(most_visits, std::max(kMostVisits, kMostVisitsPerOperation * network_.size()));
  while (visits_ < last_visit) {
    bool moved = false, moved_back = false;
    if (!narrow_stale(forwards_, earliest_, latest_, moved)) return false;
    if (moved && !follow_precedences()) return false;
    // Backwards in time: ends become starts, with the sign changed.
    mirrored_earliest_.resize(latest_.size());
    mirrored_latest_.resize(latest_.size());
    for (std::size_t i = 0; i < latest_.size(); ++i) {
      mirrored_earliest_[i] = -latest_[i];
      mirrored_latest_[i] = -earliest_[i];
    }
    if (!narrow_stale(backwards_, mirrored_earliest_, mirrored_latest_, moved_back)) return false;
    if (moved_back) {
      for (std::size_t i = 0; i < latest_.size(); ++i) latest_[i] = -mirrored_earliest_[i];
      if (!follow_precedences()) return false;
    }
    if (!moved && !moved_back) break;
  }
  return true;
}

void ConstraintPropagation::mark_stale(std::size_t machine) {
  forwards_[machine].is_stale = true;
  backwards_[machine].is_stale = true;
}

bool ConstraintPropagation::narrow_stale(std::vector<SortedOperations>& machines,
                                         std::vector<Ticks>& earliest,
                                         const std::vector<Ticks>& latest, bool& moved) {
  for (std::size_t machine = 0; machine < machines.size(); ++machine) {
    if (!machines[machine].is_stale) continue;
    machines[machine].is_stale = false;
    bool moved_here = false;
    if (!narrow_machine(machines[machine], earliest, latest, moved_here)) return false;
    if (moved_here) mark_stale(machine);
    moved |= moved_here;
  }
  return true;
}

bool ConstraintPropagation::follow_precedences() {
  const auto& order = network_.topological;
  visits_ += std::int64_t{2} * network_.size();
  for (const std::int32_t o : order) {
    const Ticks end = earliest_[at(o)] + network_.duration[at(o)];
    if (end > latest_[at(o)]) return false;
    for (const Precedence& next : network_.after(o)) {
      Ticks& later = earliest_[at(next.operation)];
      if (end + next.lag <= later) continue;
      later = end + next.lag;
      mark_stale(at(network_.machine[at(next.operation)]));
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    Ticks latest = latest_[at(*it)];
    for (const Precedence& next : network_.after(*it))
      latest = std::min(
          latest, latest_[at(next.operation)] - network_.duration[at(next.operation)] - next.lag);
    if (earliest_[at(*it)] + network_.duration[at(*it)] > latest) return false;
    if (latest == latest_[at(*it)]) continue;
    latest_[at(*it)] = latest;
    mark_stale(at(network_.machine[at(*it)]));
  }
  return true;
}

/// Sorts by time, plus or minus the duration. Insertion sort, since the previous order is nearly
/// right; std::sort if it is not.
void ConstraintPropagation::resort(std::vector<std::int32_t>& operations,
                                   const std::vector<Ticks>& times, bool minus_duration,
                                   bool plus_duration) {
  const std::size_t size = operations.size();
  keyed_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t o = at(operations[i]);
    Ticks key = times[o];
    if (minus_duration) key -= network_.duration[o];
    if (plus_duration) key += network_.duration[o];
    keyed_[i] = {key, operations[i]};
  }
  std::size_t shifts_left = 8 * size;
  for (std::size_t i = 1; i < size; ++i) {
    const auto inserted = keyed_[i];
    std::size_t k = i;
    for (; k > 0 && inserted < keyed_[k - 1]; --k) keyed_[k] = keyed_[k - 1];
    keyed_[k] = inserted;
    if (i - k > shifts_left) {
      std::sort(keyed_.begin(), keyed_.end());
      break;
    }
    shifts_left -= i - k;
  }
  for (std::size_t i = 0; i < size; ++i) operations[i] = keyed_[i].second;
}

/// Raises the earliest starts of one machine's operations. False: overload, the target cannot be
/// met.
bool ConstraintPropagation::narrow_machine(SortedOperations& sorted, std::vector<Ticks>& earliest,
                                           const std::vector<Ticks>& latest, bool& moved) {
  constexpr std::int64_t kVisits = 16;  // four sortings, two trees
  visits_ += kVisits * static_cast<std::int64_t>(sorted.by_earliest.size());
  resort(sorted.by_earliest, earliest, false, false);
  resort(sorted.by_earliest_end, earliest, false, true);
  resort(sorted.by_latest_start, latest, true, false);
  resort(sorted.by_latest_end, latest, false, false);
  for (std::size_t leaf = 0; leaf < sorted.by_earliest.size(); ++leaf)
    leaf_of_[at(sorted.by_earliest[leaf])] = static_cast<std::int32_t>(leaf);
  raised_.assign(sorted.by_earliest.size(), kNever);
  find_detectable_precedences(sorted, earliest, latest);
  if (!find_edges(sorted, earliest, latest)) return false;
  for (std::size_t leaf = 0; leaf < sorted.by_earliest.size(); ++leaf)
    if (Ticks& start = earliest[at(sorted.by_earliest[leaf])]; raised_[leaf] > start) {
      start = raised_[leaf];
      moved = true;
    }
  return true;
}

/// j must precede i if i, started as early as possible, would end after j's latest start.
void ConstraintPropagation::find_detectable_precedences(const SortedOperations& sorted,
                                                        const std::vector<Ticks>& earliest,
                                                        const std::vector<Ticks>& latest) {
  const auto earliest_end = [&](std::int32_t o) {
    return earliest[at(o)] + network_.duration[at(o)];
  };
  const auto latest_start = [&](std::int32_t o) {
    return latest[at(o)] - network_.duration[at(o)];
  };
  const auto& by_latest_start = sorted.by_latest_start;
  clear_tree(by_latest_start.size());
  std::size_t next = 0;
  for (const std::int32_t o : sorted.by_earliest_end) {
    for (; next < by_latest_start.size() && earliest_end(o) > latest_start(by_latest_start[next]);
         ++next) {
      const std::int32_t j = by_latest_start[next];
      set_leaf(at(leaf_of_[at(j)]), earliest[at(j)], network_.duration[at(j)], Role::kChosen);
    }
    const auto leaf = at(leaf_of_[at(o)]);
    const bool is_chosen = earliest_end(o) > latest_start(o);
    if (is_chosen) set_leaf(leaf, Ticks(), Ticks(), Role::kAbsent);
    raised_[leaf] = std::max(raised_[leaf], tree_[1].end);
    if (is_chosen) set_leaf(leaf, earliest[at(o)], network_.duration[at(o)], Role::kChosen);
  }
}

/// If a set together with one more operation i cannot end by the set's deadline, i follows the set.
bool ConstraintPropagation::find_edges(const SortedOperations& sorted,
                                       const std::vector<Ticks>& earliest,
                                       const std::vector<Ticks>& latest) {
  const auto& by_latest_end = sorted.by_latest_end;
  clear_tree(by_latest_end.size());
  for (const std::int32_t o : sorted.by_earliest)
    tree_[leaves_ + at(leaf_of_[at(o)])] = {network_.duration[at(o)],
                                            earliest[at(o)] + network_.duration[at(o)],
                                            network_.duration[at(o)],
                                            earliest[at(o)] + network_.duration[at(o)],
                                            -1,
                                            -1};
  for (std::size_t k = leaves_ - 1; k > 0; --k) tree_[k] = joined(tree_[2 * k], tree_[2 * k + 1]);
  for (std::size_t i = by_latest_end.size(); i-- > 0;) {
    const std::int32_t last = by_latest_end[i];
    if (tree_[1].end > latest[at(last)]) return false;
    if (i == 0) break;
    set_leaf(at(leaf_of_[at(last)]), earliest[at(last)], network_.duration[at(last)],
             Role::kOptional);
    const Ticks deadline = latest[at(by_latest_end[i - 1])];
    while (tree_[1].end_with_one > deadline) {
      const std::int32_t owner = tree_[1].end_owner;
      if (owner < 0) return false;  // the chosen operations alone miss the deadline
      raised_[at(owner)] = std::max(raised_[at(owner)], tree_[1].end);
      set_leaf(at(owner), Ticks(), Ticks(), Role::kAbsent);
    }
  }
  return true;
}

void ConstraintPropagation::clear_tree(std::size_t leaves) {
  leaves_ = 1;
  while (leaves_ < leaves) leaves_ *= 2;
  tree_.assign(2 * leaves_, {Ticks(), kNever, Ticks(), kNever, -1, -1});
}

ConstraintPropagation::TreeNode ConstraintPropagation::joined(const TreeNode& left,
                                                              const TreeNode& right) {
  TreeNode node;
  node.work = left.work + right.work;
  node.end = std::max(right.end, left.end + right.work);
  const bool left_has_more = left.work_with_one + right.work >= left.work + right.work_with_one;
  node.work_with_one =
      left_has_more ? left.work_with_one + right.work : left.work + right.work_with_one;
  node.work_owner = left_has_more ? left.work_owner : right.work_owner;
  node.end_with_one = right.end_with_one;
  node.end_owner = right.end_owner;
  if (const Ticks end = left.end + right.work_with_one; end > node.end_with_one) {
    node.end_with_one = end;
    node.end_owner = right.work_owner;
  }
  if (const Ticks end = left.end_with_one + right.work; end > node.end_with_one) {
    node.end_with_one = end;
    node.end_owner = left.end_owner;
  }
  return node;
}

void ConstraintPropagation::set_leaf(std::size_t leaf, Ticks earliest, Ticks duration, Role role) {
  const auto owner = static_cast<std::int32_t>(leaf);
  std::size_t k = leaves_ + leaf;
  switch (role) {
    case Role::kAbsent:
      tree_[k] = {Ticks(), kNever, Ticks(), kNever, -1, -1};
      break;
    case Role::kChosen:
      tree_[k] = {duration, earliest + duration, duration, earliest + duration, -1, -1};
      break;
    case Role::kOptional:
      tree_[k] = {Ticks(), kNever, duration, earliest + duration, owner, owner};
      break;
  }
  for (k /= 2; k > 0; k /= 2) tree_[k] = joined(tree_[2 * k], tree_[2 * k + 1]);
}

}  // namespace meshwright
