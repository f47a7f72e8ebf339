#include "planner/schedule_local_search.hpp"

#include <algorithm>
#include <utility>

namespace meshwright {
namespace {
std::size_t at(std::int32_t operation) { return static_cast<std::size_t>(operation); }
/// Evaluations without progress after which the search returns to the best schedule and shakes it.
constexpr int kPatience = 600;
constexpr int kTenure = 8;  ///< a swapped operation may not move back for 8 to 15 + p/2 moves
}  // namespace

TabuSearch::TabuSearch(const OperationNetwork& network)
    : network_(network),
      order_(network.of_machine),
      held_(network.of_machine.size()),
      position_(at(network.size())),
      head_(at(network.size())),
      tail_(at(network.size())),
      waiting_(at(network.size())),
      sequence_(at(network.size())),
      not_left_until_(at(network.size())),
      not_right_until_(at(network.size())),
      seen_in_block_(at(network.size() / std::max(network.microbatches, 1))) {}

/// xorshift32 (G. Marsaglia, 2003): the same on every platform.
std::uint32_t TabuSearch::random() {
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 17;
  random_state_ ^= random_state_ << 5;
  return random_state_;
}

void TabuSearch::load(const Starts& starts) {
  for (std::size_t machine = 0; machine < order_.size(); ++machine) {
    auto& order = order_[machine];
    sort_by_start(network_, starts, order);
    std::int32_t held = 0;
    held_[machine].resize(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) {
      position_[at(order[k])] = static_cast<std::int32_t>(k);
      held_[machine][k] = held += network_.room_of(order[k]);
    }
  }
}

/// Heads and tails of all operations by longest paths. False: the orders contradict each other.
bool TabuSearch::evaluate() {
  ++evaluations_;
  std::size_t count = 0;
  for (std::int32_t o = 0; o < network_.size(); ++o) {
    waiting_[at(o)] =
        static_cast<std::int32_t>(network_.before(o).size()) + (position_[at(o)] > 0 ? 1 : 0);
    head_[at(o)] = network_.release[at(network_.machine[at(o)])];
    if (waiting_[at(o)] == 0) sequence_[count++] = o;
  }
  const auto arrive = [&](std::int32_t o, Ticks time) {
    head_[at(o)] = std::max(head_[at(o)], time);
    if (--waiting_[at(o)] == 0) sequence_[count++] = o;
  };
  for (std::size_t k = 0; k < count; ++k) {
    const std::int32_t o = sequence_[k];
    const Ticks end = head_[at(o)] + network_.duration[at(o)];
    for (const Precedence& next : network_.after(o)) arrive(next.operation, end + next.lag);
    const auto& order = order_[at(network_.machine[at(o)])];
    if (const auto next = at(position_[at(o)]) + 1; next < order.size()) arrive(order[next], end);
  }
  if (count != sequence_.size()) return false;
  value_ = Ticks();
  for (std::size_t k = count; k-- > 0;) {
    const std::int32_t o = sequence_[k];
    Ticks tail = network_.tail[at(network_.machine[at(o)])];
    for (const Precedence& next : network_.after(o))
      tail = std::max(tail,
                      tail_[at(next.operation)] + network_.duration[at(next.operation)] + next.lag);
    const auto& order = order_[at(network_.machine[at(o)])];
    if (const auto next = at(position_[at(o)]) + 1; next < order.size())
      tail = std::max(tail, tail_[at(order[next])] + network_.duration[at(order[next])]);
    tail_[at(o)] = tail;
    value_ = std::max(value_, head_[at(o)] + network_.duration[at(o)] + tail);
  }
  return true;
}

Ticks TabuSearch::end(std::int32_t operation) const {
  return head_[at(operation)] + network_.duration[at(operation)];
}

/// From the start of an operation to the end of the longest path through it.
Ticks TabuSearch::remaining(std::int32_t operation) const {
  return network_.duration[at(operation)] + tail_[at(operation)];
}

/// Earliest start by precedences alone.
Ticks TabuSearch::arrival(std::int32_t operation) const {
  Ticks time = network_.release[at(network_.machine[at(operation)])];
  for (const Precedence& p : network_.before(operation))
    time = std::max(time, end(p.operation) + p.lag);
  return time;
}

/// Longest tail by precedences alone.
Ticks TabuSearch::tail_of_successors(std::int32_t operation) const {
  Ticks tail = network_.tail[at(network_.machine[at(operation)])];
  for (const Precedence& next : network_.after(operation))
    tail = std::max(tail, remaining(next.operation) + next.lag);
  return tail;
}

bool TabuSearch::is_critical(std::int32_t operation) const {
  return head_[at(operation)] + remaining(operation) == value_;
}

bool TabuSearch::is_tabu(const Move& move) const {
  const std::size_t o = at(order_[move.machine][move.from]);
  return (move.to < move.from ? not_left_until_[o] : not_right_until_[o]) > evaluations_;
}

/// No path leads from what is passed to the moved operation (or the other way round): a path to one
/// of its predecessors would make that one end later than the first operation passed.
bool TabuSearch::may_move(const Move& move) const {
  const auto& order = order_[move.machine];
  const std::int32_t moved = order[move.from];
  if (!keeps_cap(move)) return false;
  const auto is_passed = [&](std::int32_t o) {
    if (at(network_.machine[at(o)]) != move.machine) return false;
    const auto [low, high] = std::minmax(move.from, move.to);
    return at(position_[at(o)]) >= low && at(position_[at(o)]) <= high;
  };
  if (move.to < move.from) {
    const Ticks limit = end(order[move.to]);
    for (const Precedence& p : network_.before(moved))
      if (is_passed(p.operation) || end(p.operation) > limit) return false;
  } else {
    const Ticks limit = remaining(order[move.to]);
    for (const Precedence& next : network_.after(moved))
      if (is_passed(next.operation) || remaining(next.operation) > limit) return false;
  }
  return true;
}

bool TabuSearch::may_swap(std::size_t machine, std::size_t position) const {
  const std::int32_t first = order_[machine][position], second = order_[machine][position + 1];
  for (const Precedence& next : network_.after(first))
    if (next.operation == second) return false;
  return keeps_cap({machine, position + 1, position});
}

/// Taking sooner and giving back later raise the level in between.
bool TabuSearch::keeps_cap(const Move& move) const {
  if (!network_.cap[move.machine]) return true;
  const auto& held = held_[move.machine];
  const std::int32_t taken = network_.room_of(order_[move.machine][move.from]);
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

/// Longest path through an operation that changes place (E. Taillard's estimate): a lower bound of
/// the new value.
Ticks TabuSearch::estimate(const Move& move) {
  const auto& order = order_[move.machine];
  const auto [low, high] = std::minmax(move.from, move.to);
  moved_.assign(order.begin() + static_cast<std::ptrdiff_t>(low),
                order.begin() + static_cast<std::ptrdiff_t>(high) + 1);
  if (move.to < move.from)
    std::rotate(moved_.begin(), moved_.end() - 1, moved_.end());
  else
    std::rotate(moved_.begin(), moved_.begin() + 1, moved_.end());
  moved_heads_.resize(moved_.size());
  Ticks free = low > 0 ? end(order[low - 1]) : network_.release[move.machine];
  for (std::size_t k = 0; k < moved_.size(); ++k) {
    moved_heads_[k] = std::max(free, arrival(moved_[k]));
    free = moved_heads_[k] + network_.duration[at(moved_[k])];
  }
  Ticks left = high + 1 < order.size() ? remaining(order[high + 1]) : network_.tail[move.machine];
  Ticks longest;
  for (std::size_t k = moved_.size(); k-- > 0;) {
    left = std::max(left, tail_of_successors(moved_[k])) + network_.duration[at(moved_[k])];
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

/// The first operation of every sequence in the block may go to its front, the last one to its end.
void TabuSearch::consider_block(std::size_t machine, std::size_t first, std::size_t last,
                                Choice& best) {
  const auto& order = order_[machine];
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
  for (std::size_t machine = 0; machine < order_.size(); ++machine) {
    const auto& order = order_[machine];
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (!is_critical(order[k])) continue;
      const std::size_t first = k;
      while (k + 1 < order.size() && is_critical(order[k + 1]) &&
             end(order[k]) == head_[at(order[k + 1])])
        ++k;
      if (k == first) continue;
      consider_block(machine, first, k, best);
      if (network_.cap[machine]) consider_swaps(machine, first, k, best);
    }
  }
  return best.move;
}

void TabuSearch::apply(const Move& move) {
  auto& order = order_[move.machine];
  const auto [low, high] = std::minmax(move.from, move.to);
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(low);
  const auto stop = order.begin() + static_cast<std::ptrdiff_t>(high) + 1;
  std::rotate(begin, move.to < move.from ? stop - 1 : begin + 1, stop);
  auto& held = held_[move.machine];
  std::int32_t level = low > 0 ? held[low - 1] : 0;
  for (std::size_t k = low; k <= high; ++k) {
    position_[at(order[k])] = static_cast<std::int32_t>(k);
    held[k] = level += network_.room_of(order[k]);
  }
}

/// Swaps a few neighbours anywhere, as long as the orders stay consistent.
void TabuSearch::shake(int strength) {
  for (int i = 0; i < strength; ++i) {
    const std::size_t machine = random() % order_.size();
    if (order_[machine].size() < 2) continue;
    const std::size_t position = random() % (order_[machine].size() - 1);
    if (!may_swap(machine, position)) continue;
    apply({machine, position + 1, position});
    if (!evaluate()) apply({machine, position, position + 1});
  }
  evaluate();
}

Starts TabuSearch::improve(Starts best, const TabuLimits& limits) {
  const std::int64_t last_evaluation = evaluations_ + limits.most_evaluations;
  load(best);
  if (!evaluate()) return best;
  std::fill(not_left_until_.begin(), not_left_until_.end(), 0);
  std::fill(not_right_until_.begin(), not_right_until_.end(), 0);
  best_value_ = objective_of(network_, best);
  std::int64_t last_progress = evaluations_;
  int shakes = 0;
  while (best_value_ > limits.goal && evaluations_ < last_evaluation) {
    const Move move = best_move();
    if (!move.exists() || evaluations_ - last_progress > kPatience) {
      load(best);
      shake(4 + (shakes++ % 5) * 4);
      std::fill(not_left_until_.begin(), not_left_until_.end(), 0);
      std::fill(not_right_until_.begin(), not_right_until_.end(), 0);
      last_progress = evaluations_;
      continue;
    }
    const bool is_to_left = move.to < move.from;
    const std::size_t moved = at(order_[move.machine][move.from]);
    apply(move);
    const std::int64_t until = evaluations_ + kTenure + random() % 8 + network_.machines / 2;
    (is_to_left ? not_right_until_ : not_left_until_)[moved] = until;
    if (!evaluate()) {  // only operations without duration can hide a cycle
      apply({move.machine, move.to, move.from});
      (is_to_left ? not_left_until_ : not_right_until_)[moved] = evaluations_ + kPatience;
      evaluate();
      continue;
    }
    if (value_ < best_value_) {
      best_value_ = value_;
      best = head_;
      last_progress = evaluations_;
    }
  }
  return best;
}

}  // namespace meshwright
