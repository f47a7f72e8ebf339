#include "planner/schedule_local_search.hpp"

#include <algorithm>
#include <utility>

namespace meshwright {
namespace {
std::size_t at(std::int32_t operation) { return static_cast<std::size_t>(operation); }
constexpr int kForwardPass = 0, kWeightPass = 2;
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
      tabu_until_(at(network.size())) {}

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
      const int pass = network_.pass_of(order[k]);
      held += pass == kForwardPass ? 1 : pass == kWeightPass ? -1 : 0;
      held_[machine][k] = held;
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

bool TabuSearch::may_swap(std::size_t machine, std::size_t position) const {
  const std::int32_t first = order_[machine][position], second = order_[machine][position + 1];
  for (const Precedence& next : network_.after(first))
    if (next.operation == second) return false;
  if (!network_.cap[machine]) return true;
  // Only taking before giving back raises the level in between.
  const std::int32_t before = position > 0 ? held_[machine][position - 1] : 0;
  const int pass = network_.pass_of(second);
  return pass != kForwardPass || before + 1 <= *network_.cap[machine];
}

/// Value of the longest path through one of the two after the swap (E. Taillard's estimate): a
/// lower bound of the new value.
Ticks TabuSearch::estimate_swap(std::size_t machine, std::size_t position) const {
  const auto& order = order_[machine];
  const std::int32_t first = order[position], second = order[position + 1];
  const Ticks first_length = network_.duration[at(first)];
  const Ticks second_length = network_.duration[at(second)];
  Ticks second_head = network_.release[machine];
  if (position > 0) {
    const std::int32_t previous = order[position - 1];
    second_head = std::max(second_head, head_[at(previous)] + network_.duration[at(previous)]);
  }
  Ticks first_head = second_head;
  for (const Precedence& p : network_.before(second))
    second_head =
        std::max(second_head, head_[at(p.operation)] + network_.duration[at(p.operation)] + p.lag);
  first_head = second_head + second_length;
  for (const Precedence& p : network_.before(first))
    first_head =
        std::max(first_head, head_[at(p.operation)] + network_.duration[at(p.operation)] + p.lag);
  Ticks first_tail = network_.tail[machine];
  if (position + 2 < order.size()) {
    const std::int32_t next = order[position + 2];
    first_tail = std::max(first_tail, tail_[at(next)] + network_.duration[at(next)]);
  }
  for (const Precedence& p : network_.after(first))
    first_tail =
        std::max(first_tail, tail_[at(p.operation)] + network_.duration[at(p.operation)] + p.lag);
  Ticks second_tail = first_tail + first_length;
  for (const Precedence& p : network_.after(second))
    second_tail =
        std::max(second_tail, tail_[at(p.operation)] + network_.duration[at(p.operation)] + p.lag);
  return std::max(second_head + second_length + second_tail,
                  first_head + first_length + first_tail);
}

TabuSearch::Move TabuSearch::best_move(Ticks best_value) {
  Move best;
  std::pair<Ticks, std::uint32_t> best_rank;
  for (std::size_t machine = 0; machine < order_.size(); ++machine) {
    const auto& order = order_[machine];
    for (std::size_t k = 0; k + 1 < order.size(); ++k) {
      const std::int32_t first = order[k], second = order[k + 1];
      const Ticks end = head_[at(first)] + network_.duration[at(first)];
      if (end + tail_[at(first)] != value_ || end != head_[at(second)]) continue;
      if (head_[at(second)] + network_.duration[at(second)] + tail_[at(second)] != value_) continue;
      if (!may_swap(machine, k)) continue;
      const Ticks estimate = estimate_swap(machine, k);
      if (tabu_until_[at(second)] > evaluations_ && estimate >= best_value) continue;
      const std::pair rank(estimate, random());
      if (best.exists && rank >= best_rank) continue;
      best = {machine, k, true};
      best_rank = rank;
    }
  }
  return best;
}

void TabuSearch::swap(const Move& move) {
  auto& order = order_[move.machine];
  auto& held = held_[move.machine];
  const std::int32_t before = move.position > 0 ? held[move.position - 1] : 0;
  held[move.position] = before + (held[move.position + 1] - held[move.position]);
  std::swap(order[move.position], order[move.position + 1]);
  position_[at(order[move.position])] = static_cast<std::int32_t>(move.position);
  position_[at(order[move.position + 1])] = static_cast<std::int32_t>(move.position + 1);
}

/// Swaps a few neighbours anywhere, as long as the orders stay consistent.
void TabuSearch::shake(int strength) {
  for (int i = 0; i < strength; ++i) {
    const Move move{random() % order_.size(), 0, true};
    if (order_[move.machine].size() < 2) continue;
    const Move swapped{move.machine, random() % (order_[move.machine].size() - 1), true};
    if (!may_swap(swapped.machine, swapped.position)) continue;
    swap(swapped);
    if (!evaluate()) swap(swapped);
  }
  evaluate();
}

Starts TabuSearch::improve(Starts best, const TabuLimits& limits) {
  const std::int64_t last_evaluation = evaluations_ + limits.most_evaluations;
  load(best);
  if (!evaluate()) return best;
  std::fill(tabu_until_.begin(), tabu_until_.end(), 0);
  Ticks best_value = objective_of(network_, best);
  std::int64_t last_progress = evaluations_;
  int shakes = 0;
  while (best_value > limits.goal && evaluations_ < last_evaluation) {
    const Move move = best_move(best_value);
    if (!move.exists || evaluations_ - last_progress > kPatience) {
      load(best);
      shake(4 + (shakes++ % 5) * 4);
      std::fill(tabu_until_.begin(), tabu_until_.end(), 0);
      last_progress = evaluations_;
      continue;
    }
    const std::int32_t first = order_[move.machine][move.position];
    swap(move);
    tabu_until_[at(first)] = evaluations_ + kTenure + random() % 8 + network_.machines / 2;
    if (!evaluate()) {  // cannot happen for critical neighbours, but memory keeps us honest
      swap(move);
      tabu_until_[at(first)] = evaluations_ + kPatience;
      evaluate();
      continue;
    }
    if (value_ < best_value) {
      best_value = value_;
      best = head_;
      last_progress = evaluations_;
    }
  }
  return best;
}

}  // namespace meshwright
