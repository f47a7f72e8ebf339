/// Tabu search over the orders of machines (E. Nowicki and C. Smutnicki, "A fast taboo search
/// algorithm for the job shop problem", 1996), keeping precedences and memory caps.
///
/// A critical block is a run of operations of one machine without a gap on a longest path. Only
/// moving an operation to the front or to the end of its block can shorten that path (E. Balas and
/// A. Vazacopoulos, 1998), so those are the moves. The blocks of a busy pipeline are long, and such
/// a move passes many operations at once. With memory caps that are not precedences, such moves may
/// be infeasible, so neighbors are swapped as well.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/random.hpp"
#include "planner/synthesis/operation_network.hpp"
#include "planner/synthesis/schedule_construction.hpp"
#include "planner/synthesis/timed_orders.hpp"

namespace meshwright {

struct TabuLimits {
  Ticks goal;  ///< stop when reached: a lower bound
  std::int64_t most_moves = std::numeric_limits<std::int64_t>::max();
  std::int64_t most_visits = std::numeric_limits<std::int64_t>::max();  ///< see visits()
};

class TabuSearch {
 public:
  explicit TabuSearch(const OperationNetwork& network);

  /// The best schedule found, at least as good as `starts`. Deterministic.
  Starts improve(Starts starts, const TabuLimits& limits);
  /// Work done so far, in operations visited.
  std::int64_t visits() const { return orders_.visits() + visits_; }

 private:
  using Move = OrderMove;
  /// The best move seen so far, by estimated value; ties are broken at random.
  struct Choice {
    Move move;
    std::pair<Ticks, std::uint32_t> rank;
  };

  bool load(const Starts& starts);
  bool perform(const Move& move);
  void hold(std::size_t machine, std::size_t low, std::size_t high);
  Move best_move();
  void consider_block(std::size_t machine, std::size_t first, std::size_t last, Choice& best);
  void consider_swaps(std::size_t machine, std::size_t first, std::size_t last, Choice& best);
  void consider(const Move& move, Choice& best);
  bool is_tabu(const Move& move) const;
  bool may_move(const Move& move) const;
  bool may_swap(std::size_t machine, std::size_t position) const;
  bool keeps_cap(const Move& move) const;
  Ticks estimate(const Move& move);
  void shake(int strength);
  std::uint32_t random() { return xorshift32(random_state_); }

  const OperationNetwork& network_;
  TimedOrders orders_;
  std::vector<std::vector<std::int32_t>> held_;  ///< by machine: room in use after each position
  std::vector<std::int64_t> not_left_until_, not_right_until_;
  std::vector<std::int64_t> seen_in_block_;  ///< by (pass, stage): number of the block
  std::int64_t blocks_ = 0;
  std::vector<std::int32_t> moved_;  ///< scratch of estimate()
  std::vector<Ticks> moved_heads_;
  Ticks best_value_;
  std::int64_t moves_ = 0, visits_ = 0;
  std::uint32_t random_state_ = 1;
};

}  // namespace meshwright
