#include "planner/constraint_propagation.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace meshwright {
namespace {
/// Earlier than anything; small enough that sums with real times do not overflow.
constexpr Ticks kNever(-(std::int64_t{1} << 61));
constexpr int kMostRounds = 200;  // a stop for slow convergence; stopping early stays sound
std::size_t at(std::int32_t operation) { return static_cast<std::size_t>(operation); }
}  // namespace

ConstraintPropagation::ConstraintPropagation(const OperationNetwork& network,
                                             ScheduleObjective objective)
    : network_(network), objective_(objective), leaf_of_(at(network.size())) {}

bool ConstraintPropagation::could_meet(Ticks target) {
  target_ = target;
  const auto size = at(network_.size());
  earliest_.assign(size, Ticks());
  if (objective_ == ScheduleObjective::kMakespan) {
    latest_.assign(size, target);
  } else {
    // The first forward of the first stage starts at 0; everything hangs on it within a period.
    latest_.assign(size,
                   target + target + objective_of(network_, meshwright::earliest_starts(network_)));
    latest_[0] = network_.duration[0];
  }
  return propagate();
}

bool ConstraintPropagation::propagate() {
  if (!follow_precedences()) return false;
  for (int round = 0; round < kMostRounds; ++round) {
    bool moved = false, moved_back = false;
    for (const auto& operations : network_.of_machine)
      if (!narrow_machine(operations, earliest_, latest_, moved)) return false;
    if (moved && !follow_precedences()) return false;
    // Backwards in time: ends become starts, with the sign changed.
    mirrored_earliest_.resize(latest_.size());
    mirrored_latest_.resize(latest_.size());
    for (std::size_t i = 0; i < latest_.size(); ++i) {
      mirrored_earliest_[i] = -latest_[i];
      mirrored_latest_[i] = -earliest_[i];
    }
    for (const auto& operations : network_.of_machine)
      if (!narrow_machine(operations, mirrored_earliest_, mirrored_latest_, moved_back))
        return false;
    if (moved_back) {
      for (std::size_t i = 0; i < latest_.size(); ++i) latest_[i] = -mirrored_earliest_[i];
      if (!follow_precedences()) return false;
    }
    if (!moved && !moved_back) break;
  }
  return true;
}

bool ConstraintPropagation::follow_precedences() {
  if (!follow_precedences_once()) return false;
  if (objective_ == ScheduleObjective::kMakespan) return true;
  // A device's last end and its first start are at most a period apart.
  for (int round = 0; round < kMostRounds; ++round) {
    bool moved = false;
    for (const auto& operations : network_.of_machine) {
      Ticks latest_first = Ticks::max(), earliest_last = kNever;
      for (const std::int32_t o : operations) {
        latest_first = std::min(latest_first, latest_[at(o)] - network_.duration[at(o)]);
        earliest_last = std::max(earliest_last, earliest_[at(o)] + network_.duration[at(o)]);
      }
      for (const std::int32_t o : operations) {
        if (latest_[at(o)] > latest_first + target_) {
          latest_[at(o)] = latest_first + target_;
          moved = true;
        }
        if (earliest_[at(o)] < earliest_last - target_) {
          earliest_[at(o)] = earliest_last - target_;
          moved = true;
        }
      }
    }
    if (!moved) return true;
    if (!follow_precedences_once()) return false;
  }
  return true;
}

bool ConstraintPropagation::follow_precedences_once() {
  const auto& order = network_.topological;
  for (const std::int32_t o : order) {
    const Ticks end = earliest_[at(o)] + network_.duration[at(o)];
    if (end > latest_[at(o)]) return false;
    for (const Precedence& next : network_.after(o)) {
      Ticks& later = earliest_[at(next.operation)];
      later = std::max(later, end + next.lag);
    }
  }
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    Ticks& latest = latest_[at(*it)];
    for (const Precedence& next : network_.after(*it))
      latest = std::min(
          latest, latest_[at(next.operation)] - network_.duration[at(next.operation)] - next.lag);
    if (earliest_[at(*it)] + network_.duration[at(*it)] > latest) return false;
  }
  return true;
}

/// Raises earliest starts of one machine's operations. False: overload, the target is out of reach.
bool ConstraintPropagation::narrow_machine(const std::vector<std::int32_t>& operations,
                                           std::vector<Ticks>& earliest, std::vector<Ticks>& latest,
                                           bool& moved) {
  by_earliest_ = operations;
  std::sort(by_earliest_.begin(), by_earliest_.end(),
            [&](std::int32_t a, std::int32_t b) { return earliest[at(a)] < earliest[at(b)]; });
  for (std::size_t leaf = 0; leaf < by_earliest_.size(); ++leaf)
    leaf_of_[at(by_earliest_[leaf])] = static_cast<std::int32_t>(leaf);
  raised_.assign(operations.size(), kNever);
  find_detectable_precedences(earliest, latest);
  if (!find_edges(earliest, latest)) return false;
  for (std::size_t leaf = 0; leaf < by_earliest_.size(); ++leaf)
    if (Ticks& start = earliest[at(by_earliest_[leaf])]; raised_[leaf] > start) {
      start = raised_[leaf];
      moved = true;
    }
  return true;
}

/// j must come before i when i, started as early as it can, would end after j's latest start.
void ConstraintPropagation::find_detectable_precedences(const std::vector<Ticks>& earliest,
                                                        const std::vector<Ticks>& latest) {
  const auto earliest_end = [&](std::int32_t o) {
    return earliest[at(o)] + network_.duration[at(o)];
  };
  const auto latest_start = [&](std::int32_t o) {
    return latest[at(o)] - network_.duration[at(o)];
  };
  order_ = by_earliest_;
  std::sort(order_.begin(), order_.end(),
            [&](std::int32_t a, std::int32_t b) { return latest_start(a) < latest_start(b); });
  by_earliest_end_ = by_earliest_;
  std::sort(by_earliest_end_.begin(), by_earliest_end_.end(),
            [&](std::int32_t a, std::int32_t b) { return earliest_end(a) < earliest_end(b); });
  clear_tree(order_.size());
  std::size_t next = 0;
  for (const std::int32_t o : by_earliest_end_) {
    for (; next < order_.size() && earliest_end(o) > latest_start(order_[next]); ++next) {
      const std::int32_t j = order_[next];
      set_leaf(at(leaf_of_[at(j)]), earliest[at(j)], network_.duration[at(j)], Role::kChosen);
    }
    const auto leaf = at(leaf_of_[at(o)]);
    const bool is_chosen = earliest_end(o) > latest_start(o);
    if (is_chosen) set_leaf(leaf, Ticks(), Ticks(), Role::kAbsent);
    raised_[leaf] = std::max(raised_[leaf], tree_[1].end);
    if (is_chosen) set_leaf(leaf, earliest[at(o)], network_.duration[at(o)], Role::kChosen);
  }
}

/// If a set with one more operation i could not end by the set's deadline, i comes after the set.
bool ConstraintPropagation::find_edges(const std::vector<Ticks>& earliest,
                                       const std::vector<Ticks>& latest) {
  order_ = by_earliest_;
  std::sort(order_.begin(), order_.end(),
            [&](std::int32_t a, std::int32_t b) { return latest[at(a)] > latest[at(b)]; });
  clear_tree(order_.size());
  for (const std::int32_t o : by_earliest_)
    tree_[leaves_ + at(leaf_of_[at(o)])] = {network_.duration[at(o)],
                                            earliest[at(o)] + network_.duration[at(o)],
                                            network_.duration[at(o)],
                                            earliest[at(o)] + network_.duration[at(o)],
                                            -1,
                                            -1};
  for (std::size_t k = leaves_ - 1; k > 0; --k) tree_[k] = joined(tree_[2 * k], tree_[2 * k + 1]);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::int32_t last = order_[i];
    if (tree_[1].end > latest[at(last)]) return false;
    if (i + 1 == order_.size()) break;
    set_leaf(at(leaf_of_[at(last)]), earliest[at(last)], network_.duration[at(last)],
             Role::kOptional);
    const Ticks deadline = latest[at(order_[i + 1])];
    while (tree_[1].end_with_one > deadline) {
      const std::int32_t owner = tree_[1].end_owner;
      if (owner < 0) return false;  // the chosen ones alone miss the deadline
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
