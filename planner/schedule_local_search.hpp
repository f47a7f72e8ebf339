/// Tabu search over the orders of machines: swaps neighbours on critical paths (E. Nowicki and
/// C. Smutnicki, "A fast taboo search algorithm for the job shop problem", 1996), keeping
/// precedences and memory caps.
#pragma once

#include <cstdint>
#include <functional>
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
    std::size_t machine = 0, position = 0;  ///< swaps positions `position` and `position` + 1
    bool exists = false;
  };

  void load(const Starts& starts);
  bool evaluate();
  Move best_move(Ticks best_value);
  bool may_swap(std::size_t machine, std::size_t position) const;
  Ticks estimate_swap(std::size_t machine, std::size_t position) const;
  void swap(const Move& move);
  void shake(int strength);
  std::uint32_t random();

  const OperationNetwork& network_;
  std::vector<std::vector<std::int32_t>> order_;  ///< by machine
  std::vector<std::vector<std::int32_t>>
      held_;  ///< room in use after each position, capped machines
  std::vector<std::int32_t> position_;
  std::vector<Ticks> head_, tail_;
  std::vector<std::int32_t> waiting_, sequence_;
  std::vector<std::int64_t> tabu_until_;
  Ticks value_;
  std::int64_t evaluations_ = 0;
  std::uint32_t random_state_ = 1;
};

}  // namespace meshwright
