/// Tabu search over the orders of machines (E. Nowicki and C. Smutnicki, "A fast taboo search
/// algorithm for the job shop problem", 1996), keeping precedences and memory caps.
///
/// A critical block is a run of operations of one machine without a gap on a longest path. Only
/// taking an operation out of it to its front or to its end can shorten that path (E. Balas and
/// A. Vazacopoulos, 1998), so those are the moves. The blocks of a busy pipeline are long and such
/// a move passes many operations at once. Where a cap is not expressed by precedences, such a move
/// may be barred, so neighbours are swapped as well.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/operation_network.hpp"
#include "planner/schedule_construction.hpp"

namespace meshwright {

struct TabuLimits {
  Ticks goal;                         ///< stop when reached: a lower bound
  std::int64_t most_evaluations = 0;  ///< stop after so many schedules were timed
};

class TabuSearch {
 public:
  explicit TabuSearch(const OperationNetwork& network);

  /// The best schedule found, at least as good as `starts`. Deterministic.
  Starts improve(Starts starts, const TabuLimits& limits);
  std::int64_t evaluations() const { return evaluations_; }

 private:
  struct Move {
    std::size_t machine = 0;
    std::size_t from = 0, to = 0;  ///< positions; what is in between makes room
    bool exists() const { return from != to; }
  };
  /// The best move seen so far, by estimated value; ties are broken at random.
  struct Choice {
    Move move;
    std::pair<Ticks, std::uint32_t> rank;
  };

  void load(const Starts& starts);
  bool evaluate();
  Move best_move();
  bool is_critical(std::int32_t operation) const;
  void consider_block(std::size_t machine, std::size_t first, std::size_t last, Choice& best);
  void consider_swaps(std::size_t machine, std::size_t first, std::size_t last, Choice& best);
  void consider(const Move& move, Choice& best);
  bool is_tabu(const Move& move) const;
  bool may_move(const Move& move) const;
  bool may_swap(std::size_t machine, std::size_t position) const;
  bool keeps_cap(const Move& move) const;
  Ticks arrival(std::int32_t operation) const;
  Ticks tail_of_successors(std::int32_t operation) const;
  Ticks end(std::int32_t operation) const;
  Ticks remaining(std::int32_t operation) const;
  Ticks estimate(const Move& move);
  void apply(const Move& move);
  void shake(int strength);
  std::uint32_t random();

  const OperationNetwork& network_;
  std::vector<std::vector<std::int32_t>> order_;  ///< by machine
  std::vector<std::vector<std::int32_t>>
      held_;  ///< room in use after each position, capped machines
  std::vector<std::int32_t> position_;
  std::vector<Ticks> head_, tail_;
  std::vector<std::int32_t> waiting_, sequence_;
  std::vector<std::int64_t> not_left_until_, not_right_until_;
  std::vector<std::int64_t> seen_in_block_;  ///< by (pass, stage): number of the block
  std::int64_t blocks_ = 0;
  std::vector<std::int32_t> moved_;  ///< scratch of estimate()
  std::vector<Ticks> moved_heads_;
  Ticks value_, best_value_;
  std::int64_t evaluations_ = 0;
  std::uint32_t random_state_ = 1;
};

}  // namespace meshwright
