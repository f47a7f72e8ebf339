#include "planner/synthesis/schedule_local_search.hpp"

#include <algorithm>
#include <utility>

namespace meshwright {
namespace {
/// Moves without progress after which the search restarts from the best schedule, perturbed.
constexpr int kPatience = 200;
constexpr int kTenure = 8;  ///< a moved operation may not move back for 8 to 15 + p/2 moves
}  // namespace

TabuSearch::TabuSearch(const OperationNetwork& network)
    : network_(network),
      orders_(network),
      held_(network.of_machine.size()),
      not_left_until_(at(network.size())),
      not_right_until_(at(network.size())),
      seen_in_block_(at(network.size() / std::max(network.microbatches, 1))) {}

bool TabuSearch::load(const Starts& starts) {
  std::fill(not_left_until_.begin(), not_left_until_.end(), 0);
  std::fill(not_right_until_.begin(), not_right_until_.end(), 0);
  if (!orders_.load(starts)) return false;
  for (std::size_t machine = 0; machine < held_.size(); ++machine) {
    held_[machine].resize(orders_.order(machine).size());
    hold(machine, 0, held_[machine].size() - 1);
  }
  return true;
}

/// Recounts the room in use after the positions from `low` to `high`.
void TabuSearch::hold(std::size_t machine, std::size_t low, std::size_t high) {
  auto& held = held_[machine];
  std::int32_t level = low > 0 ? held[low - 1] : 0;
  for (std::size_t k = low; k <= high; ++k)
    held[k] = level += network_.room_of(orders_.order(machine)[k]);
}

bool TabuSearch::perform(const Move& move) {
  ++moves_;
  if (!orders_.perform(move)) return false;
  const auto [low, high] = std::minmax(move.from, move.to);
  hold(move.machine, low, high);
  return true;
}

bool TabuSearch::is_tabu(const Move& move) const {
  const std::size_t o = at(orders_.order(move.machine)[move.from]);
  return (move.to < move.from ? not_left_until_[o] : not_right_until_[o]) > moves_;
}

/// True if no path leads from a passed operation to the moved one (or the other way round): a path
/// to one of its predecessors would make that predecessor end after the first passed operation.
bool TabuSearch::may_move(const Move& move) const {
  const auto& order = orders_.order(move.machine);
  const std::int32_t moved = order[move.from];
  if (!keeps_cap(move)) return false;
  const auto is_passed = [&](std::int32_t o) {
    if (at(network_.machine[at(o)]) != move.machine) return false;
    const auto [low, high] = std::minmax(move.from, move.to);
    return orders_.position(o) >= low && orders_.position(o) <= high;
  };
  if (move.to < move.from) {
    const Ticks limit = orders_.end(order[move.to]);
    for (const Precedence& p : network_.before(moved))
      if (is_passed(p.operation) || orders_.end(p.operation) > limit) return false;
  } else {
    const Ticks limit = orders_.remaining(order[move.to]);
    for (const Precedence& next : network_.after(moved))
      if (is_passed(next.operation) || orders_.remaining(next.operation) > limit) return false;
  }
  return true;
}

bool TabuSearch::may_swap(std::size_t machine, std::size_t position) const {
  const std::int32_t first = orders_.order(machine)[position],
                     second = orders_.order(machine)[position + 1];
  for (const Precedence& next : network_.after(first))
    if (next.operation == second) return false;
  return keeps_cap({machine, position + 1, position});
}

/// Acquiring earlier or releasing later raises the level in between.
bool TabuSearch::keeps_cap(const Move& move) const {
  if (!network_.cap[move.machine]) return true;
  const auto& held = held_[move.machine];
  const std::int32_t taken = network_.room_of(orders_.order(move.machine)[move.from]);
  const int cap = *network_.cap[move.machine];
  if (move.to < move.from) {
    std::int32_t level = (move.to > 0 ? held[move.to - 1] : 0) + taken;
    if (taken <= 0) return true;
    for (std::size_t k = move.to; level <= cap && k < move.from; ++k) level = held[k] + taken;
    return level <= cap;
  }
  if (taken >= 0) return true;
  for (std::size_t k = move.from + 1; k <= move.to; ++k)
    if (held[k] - taken > cap) return false;
  return true;
}

/// Longest path through a moved operation (E. Taillard's estimate): a lower bound of the new value.
Ticks TabuSearch::estimate(const Move& move) {
  const auto& order = orders_.order(move.machine);
  const auto [low, high] = std::minmax(move.from, move.to);
  moved_.assign(order.begin() + static_cast<std::ptrdiff_t>(low),
                order.begin() + static_cast<std::ptrdiff_t>(high) + 1);
  if (move.to < move.from)
    std::rotate(moved_.begin(), moved_.end() - 1, moved_.end());
  else
    std::rotate(moved_.begin(), moved_.begin() + 1, moved_.end());
  moved_heads_.resize(moved_.size());
  visits_ += 2 * static_cast<std::int64_t>(moved_.size());
  Ticks free = low > 0 ? orders_.end(order[low - 1]) : network_.release[move.machine];
  for (std::size_t k = 0; k < moved_.size(); ++k) {
    moved_heads_[k] = std::max(free, orders_.arrival(moved_[k]));
    free = moved_heads_[k] + network_.duration[at(moved_[k])];
  }
  Ticks left =
      high + 1 < order.size() ? orders_.remaining(order[high + 1]) : network_.tail[move.machine];
  Ticks longest;
  for (std::size_t k = moved_.size(); k-- > 0;) {
    left = std::max(left, orders_.departure(moved_[k])) + network_.duration[at(moved_[k])];
    longest = std::max(longest, moved_heads_[k] + left);
  }
  return longest;
}

void TabuSearch::consider(const Move& move, Choice& best) {
  const Ticks estimated = estimate(move);
  if (is_tabu(move) && estimated >= best_value_) return;
  const std::pair rank(estimated, random());
  if (!best.move.exists() || rank < best.rank) best = {move, rank};
}

/// Moves the first operation of each sequence to the front of the block, and the last one to its
/// end.
void TabuSearch::consider_block(std::size_t machine, std::size_t first, std::size_t last,
                                Choice& best) {
  const auto& order = orders_.order(machine);
  const auto sequence_of = [&](std::size_t k) { return at(order[k] / network_.microbatches); };
  ++blocks_;
  seen_in_block_[sequence_of(first)] = blocks_;
  for (std::size_t k = first + 1; k <= last; ++k) {
    if (std::exchange(seen_in_block_[sequence_of(k)], blocks_) == blocks_) continue;
    if (const Move move{machine, k, first}; may_move(move)) consider(move, best);
  }
  ++blocks_;
  seen_in_block_[sequence_of(last)] = blocks_;
  for (std::size_t k = last; k-- > first;) {
    if (std::exchange(seen_in_block_[sequence_of(k)], blocks_) == blocks_) continue;
    if (const Move move{machine, k, last}; may_move(move)) consider(move, best);
  }
}

void TabuSearch::consider_swaps(std::size_t machine, std::size_t first, std::size_t last,
                                Choice& best) {
  for (std::size_t k = first; k < last; ++k)
    if (may_swap(machine, k)) consider({machine, k + 1, k}, best);
}

TabuSearch::Move TabuSearch::best_move() {
  Choice best;
  visits_ += network_.size() / 2;
  for (std::size_t machine = 0; machine < orders_.machines(); ++machine) {
    const auto& order = orders_.order(machine);
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (!orders_.is_critical(order[k])) continue;
      const std::size_t first = k;
      while (k + 1 < order.size() && orders_.is_critical(order[k + 1]) &&
             orders_.end(order[k]) == orders_.start(order[k + 1]))
        ++k;
      if (k == first) continue;
      consider_block(machine, first, k, best);
      if (network_.cap[machine]) consider_swaps(machine, first, k, best);
    }
  }
  return best.move;
}

/// Swaps a few random neighbors, keeping the orders consistent.
void TabuSearch::shake(int strength) {
  for (int i = 0; i < strength; ++i) {
    const std::size_t machine = random() % orders_.machines();
    if (orders_.order(machine).size() < 2) continue;
    const std::size_t position = random() % (orders_.order(machine).size() - 1);
    if (may_swap(machine, position)) perform({machine, position + 1, position});
  }
}

Starts TabuSearch::improve(Starts best, const TabuLimits& limits) {
  const std::int64_t first_move = moves_, first_visit = visits();
  if (!load(best)) return best;
  best_value_ = objective_of(network_, best);
  std::int64_t last_progress = moves_;
  int shakes = 0;
  while (best_value_ > limits.goal && moves_ - first_move < limits.most_moves &&
         visits() - first_visit < limits.most_visits) {
    const Move move = best_move();
    if (!move.exists() || moves_ - last_progress > kPatience) {
      load(best);
      shake(4 + (shakes++ % 5) * 4);
      last_progress = ++moves_;  // so that the search ends even if no move exists
      continue;
    }
    const std::size_t moved = at(orders_.order(move.machine)[move.from]);
    if (!perform(move)) {  // a cycle: only possible with zero durations
      (move.is_to_left() ? not_left_until_ : not_right_until_)[moved] = moves_ + kPatience;
      continue;
    }
    const std::int64_t until = moves_ + kTenure + random() % 8 + network_.machines / 2;
    (move.is_to_left() ? not_right_until_ : not_left_until_)[moved] = until;
    if (orders_.value() < best_value_) {
      best_value_ = orders_.value();
      best = orders_.starts();
      last_progress = moves_;
    }
  }
  return best;
}

}  // namespace meshwright
