#include "planner/synthesis/timed_orders.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace meshwright {

TimedOrders::TimedOrders(const OperationNetwork& network)
    : network_(network),
      order_(network.of_machine),
      position_(at(network.size())),
      waiting_(at(network.size())) {
  const std::int32_t nothing = network.size() + network.machines;
  neighbors_.resize(at(network.size()));
  for (std::int32_t o = 0; o < network.size(); ++o) {
    Neighbors& n = neighbors_[at(o)];
    n.duration = network.duration[at(o)];
    n.from_other = n.to_other = nothing;
    for (const Precedence& p : network.before(o)) {
      if (network.machine[at(p.operation)] == network.machine[at(o)]) continue;
      MW_CHECK(n.from_other == nothing);
      n.from_other = p.operation;
      n.lag_from_other = p.lag;
    }
    for (const Precedence& p : network.after(o)) {
      if (network.machine[at(p.operation)] == network.machine[at(o)]) continue;
      MW_CHECK(n.to_other == nothing);
      n.to_other = p.operation;
      n.lag_to_other = p.lag;
    }
  }
  const std::size_t all = at(nothing) + 1;
  end_.resize(all);
  remaining_.resize(all);
  rank_.assign(all, -1);
  for (std::size_t machine = 0; machine < order_.size(); ++machine) {
    end_[at(network.size()) + machine] = network.release[machine];
    remaining_[at(network.size()) + machine] = network.tail[machine];
  }
}

Starts TimedOrders::starts() const {
  Starts result(neighbors_.size());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = end_[i] - neighbors_[i].duration;
  return result;
}

bool TimedOrders::load(std::span<const Ticks> starts) {
  for (std::size_t machine = 0; machine < order_.size(); ++machine) {
    sort_by_start(network_, starts, order_[machine]);
    link(machine, 0, order_[machine].size() - 1);
  }
  if (!sort_topologically()) return false;
  update_ends(0, sequence_.size() - 1);
  update_remaining(0, sequence_.size() - 1);
  update_value();
  return true;
}

/// Updates positions and neighbors on the machine from `low` to `high`, including the operations
/// next to them.
void TimedOrders::link(std::size_t machine, std::size_t low, std::size_t high) {
  const auto& order = order_[machine];
  const std::int32_t boundary = network_.size() + static_cast<std::int32_t>(machine);
  std::int32_t before = low > 0 ? order[low - 1] : boundary;
  for (std::size_t k = low; k <= high; ++k) {
    const std::int32_t o = order[k];
    position_[at(o)] = k;
    neighbors_[at(o)].before = before;
    if (before < network_.size()) neighbors_[at(before)].after = o;
    before = o;
  }
  const bool is_last = high + 1 == order.size();
  neighbors_[at(before)].after = is_last ? boundary : order[high + 1];
  if (!is_last) neighbors_[at(order[high + 1])].before = before;
}

bool TimedOrders::sort_topologically() {
  const std::int32_t size = network_.size();
  sequence_.clear();
  for (std::int32_t o = 0; o < size; ++o) {
    const Neighbors& n = neighbors_[at(o)];
    waiting_[at(o)] = (n.before < size ? 1 : 0) + (n.from_other < size ? 1 : 0);
    if (waiting_[at(o)] == 0) sequence_.push_back(o);
  }
  for (std::size_t k = 0; k < sequence_.size(); ++k) {
    rank_[at(sequence_[k])] = static_cast<std::int32_t>(k);
    const Neighbors& n = neighbors_[at(sequence_[k])];
    for (const std::int32_t next : {n.after, n.to_other})
      if (next < size && --waiting_[at(next)] == 0) sequence_.push_back(next);
  }
  visits_ += std::int64_t{3} * size;
  return sequence_.size() == at(size);
}

void TimedOrders::rotate(const OrderMove& move) {
  auto& order = order_[move.machine];
  const auto [low, high] = std::minmax(move.from, move.to);
  const auto begin = order.begin() + static_cast<std::ptrdiff_t>(low);
  const auto stop = order.begin() + static_cast<std::ptrdiff_t>(high) + 1;
  std::rotate(begin, move.is_to_left() ? stop - 1 : begin + 1, stop);
  link(move.machine, low, high);
}

bool TimedOrders::perform(const OrderMove& move) {
  const auto& order = order_[move.machine];
  const auto [low, high] = std::minmax(move.from, move.to);
  const auto first = at(rank_[at(order[low])]), last = at(rank_[at(order[high])]);
  rotate(move);
  if (!reorder(first, last, move.is_to_left())) {
    rotate({move.machine, move.to, move.from});
    return false;
  }
  // The operations next to the moved range have new neighbors as well.
  const std::int32_t before = rank_[at(neighbors_[at(order[low])].before)];
  const std::int32_t behind = rank_[at(neighbors_[at(order[high])].after)];
  update_ends(first, std::max(last, at(std::max(behind, 0))));
  update_remaining(before < 0 ? first : std::min(first, at(before)), last);
  update_value();
  return true;
}

/// Repairs the topological order between two positions. An operation moved to the left was the last
/// one there: it goes first, together with the operations that it now waits for. An operation moved
/// to the right was the first one: it goes last, together with the operations that wait for it.
/// False if the operation at the other end is among them: a cycle.
bool TimedOrders::reorder(std::size_t low, std::size_t high, bool is_to_left) {
  const auto mark = [&](std::int32_t o) {
    const std::int32_t rank = rank_[at(o)];
    if (rank >= static_cast<std::int32_t>(low) && rank <= static_cast<std::int32_t>(high))
      is_marked_[at(rank) - low] = 1;
  };
  is_marked_.assign(high - low + 1, 0);
  is_marked_[is_to_left ? high - low : 0] = 1;
  for (std::size_t i = 0; i <= high - low; ++i) {
    const std::size_t k = is_to_left ? high - i : low + i;
    if (is_marked_[k - low] == 0) continue;
    const Neighbors& n = neighbors_[at(sequence_[k])];
    mark(is_to_left ? n.before : n.after);
    mark(is_to_left ? n.from_other : n.to_other);
  }
  visits_ += static_cast<std::int64_t>(high - low + 1);
  if (is_marked_[is_to_left ? 0 : high - low] != 0) return false;
  behind_.clear();
  std::size_t place = low;
  for (std::size_t k = low; k <= high; ++k) {
    if ((is_marked_[k - low] != 0) == is_to_left)
      sequence_[place++] = sequence_[k];
    else
      behind_.push_back(sequence_[k]);
  }
  std::copy(behind_.begin(), behind_.end(), sequence_.begin() + static_cast<std::ptrdiff_t>(place));
  for (std::size_t k = low; k <= high; ++k) rank_[at(sequence_[k])] = static_cast<std::int32_t>(k);
  return true;
}

/// Updates from `first` on, and beyond `last` until nothing changes.
void TimedOrders::update_ends(std::size_t first, std::size_t last) {
  std::size_t k = first;
  for (; k <= last; ++k) {
    const std::int32_t o = sequence_[k];
    const Neighbors& n = neighbors_[at(o)];
    const Ticks end =
        n.duration + std::max(end_[at(n.before)], end_[at(n.from_other)] + n.lag_from_other);
    if (end == end_[at(o)]) continue;
    end_[at(o)] = end;
    const std::int32_t next = std::max(rank_[at(n.after)], rank_[at(n.to_other)]);
    if (next > static_cast<std::int32_t>(last)) last = at(next);
  }
  visits_ += static_cast<std::int64_t>(k - first);
}

/// Updates from `last` backward, and beyond `first` until nothing changes.
void TimedOrders::update_remaining(std::size_t first, std::size_t last) {
  std::size_t k = last + 1;
  for (; k > first; --k) {
    const std::int32_t o = sequence_[k - 1];
    const Neighbors& n = neighbors_[at(o)];
    const Ticks remaining =
        n.duration + std::max(remaining_[at(n.after)], remaining_[at(n.to_other)] + n.lag_to_other);
    if (remaining == remaining_[at(o)]) continue;
    remaining_[at(o)] = remaining;
    for (const std::int32_t next : {rank_[at(n.before)], rank_[at(n.from_other)]})
      if (next >= 0) first = std::min(first, at(next));
  }
  visits_ += static_cast<std::int64_t>(last + 1 - k);
}

void TimedOrders::update_value() {
  value_ = Ticks();
  for (std::size_t machine = 0; machine < order_.size(); ++machine)
    value_ = std::max(value_, end(order_[machine].back()) + network_.tail[machine]);
}

}  // namespace meshwright
