/// Machine orders with incrementally updated longest paths.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/synthesis/operation_network.hpp"
#include "planner/synthesis/schedule_construction.hpp"

namespace meshwright {

/// Moves the operation at one position of a machine to another; those in between shift by one.
struct OrderMove {
  std::size_t machine = 0;
  std::size_t from = 0, to = 0;
  bool exists() const { return from != to; }
  bool is_to_left() const { return to < from; }
};

/// The cost of a move is proportional to what it changes: the topological order of all operations
/// is repaired between the two ends of the move (after D. Pearce and P. Kelly, "A dynamic
/// topological sort algorithm for directed acyclic graphs", 2006), and paths are updated from there
/// until nothing changes.
class TimedOrders {
 public:
  explicit TimedOrders(const OperationNetwork& network);

  /// Sets the orders of a schedule. False if they contradict the precedences.
  bool load(std::span<const Ticks> starts);
  /// The move must not pass a predecessor or successor of the operation on its own machine. Returns
  /// false and changes nothing if it contradicts precedences between machines.
  bool perform(const OrderMove& move);

  std::size_t machines() const { return order_.size(); }
  const std::vector<std::int32_t>& order(std::size_t machine) const { return order_[machine]; }
  std::size_t position(std::int32_t operation) const { return position_[at(operation)]; }

  Ticks value() const { return value_; }
  Ticks duration(std::int32_t operation) const { return neighbors_[at(operation)].duration; }
  Ticks end(std::int32_t operation) const { return end_[at(operation)]; }
  Ticks start(std::int32_t operation) const { return end(operation) - duration(operation); }
  /// Longest path from the start of an operation.
  Ticks remaining(std::int32_t operation) const { return remaining_[at(operation)]; }
  bool is_critical(std::int32_t operation) const {
    return start(operation) + remaining(operation) == value_;
  }
  /// Earliest start, and longest path after the end, as determined by other machines.
  Ticks arrival(std::int32_t operation) const {
    const Neighbors& n = neighbors_[at(operation)];
    return end_[at(n.from_other)] + n.lag_from_other;
  }
  Ticks departure(std::int32_t operation) const {
    const Neighbors& n = neighbors_[at(operation)];
    return remaining_[at(n.to_other)] + n.lag_to_other;
  }
  Starts starts() const;

  /// Work done so far, in operations visited.
  std::int64_t visits() const { return visits_; }

 private:
  static std::size_t at(std::int32_t operation) { return static_cast<std::size_t>(operation); }

  /// A valid machine order implies the precedences within the machine, so that only the previous
  /// and next operation and precedences with other machines matter: with one route, at most one on
  /// each side. Missing neighbors are boundary nodes, numbered from the size of the network: one
  /// per machine, whose end is the release and whose remaining path is the tail, then one at time
  /// 0.
  struct Neighbors {
    std::int32_t before = 0, after = 0;         ///< on the same machine
    std::int32_t from_other = 0, to_other = 0;  ///< on another machine
    Ticks lag_from_other, lag_to_other, duration;
  };

  void link(std::size_t machine, std::size_t low, std::size_t high);
  bool sort_topologically();
  bool reorder(std::size_t low, std::size_t high, bool is_to_left);
  void update_ends(std::size_t first, std::size_t last);
  void update_remaining(std::size_t first, std::size_t last);
  void rotate(const OrderMove& move);
  void update_value();

  const OperationNetwork& network_;
  std::vector<std::vector<std::int32_t>> order_;  ///< by machine
  std::vector<std::size_t> position_;
  std::vector<Neighbors> neighbors_;
  std::vector<Ticks> end_, remaining_;
  std::vector<std::int32_t> sequence_, rank_;  ///< a topological order, and positions in it
  Ticks value_;
  std::int64_t visits_ = 0;
  // Scratch.
  std::vector<std::int32_t> waiting_, behind_;
  std::vector<char> is_marked_;
};

}  // namespace meshwright
