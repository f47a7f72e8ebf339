#include "planner/synthesis/timed_orders.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

/// The precondition of perform(): the move passes no direct predecessor or successor.
bool is_allowed(const OperationNetwork& network, const std::vector<std::int32_t>& order,
                const OrderMove& move) {
  const std::size_t low = std::min(move.from, move.to), high = std::max(move.from, move.to);
  const auto neighbors =
      move.is_to_left() ? network.before(order[move.from]) : network.after(order[move.from]);
  for (std::size_t k = low; k <= high; ++k)
    for (const Precedence& p : neighbors)
      if (p.operation == order[k]) return false;
  return true;
}

void expect_paths_of(const OperationNetwork& network, const TimedOrders& orders,
                     const std::vector<std::vector<std::int32_t>>& expected_orders) {
  const std::optional<Starts> starts = starts_of_orders(network, expected_orders);
  ASSERT_TRUE(starts);
  EXPECT_EQ(orders.starts(), *starts);
  EXPECT_EQ(orders.value(), objective_of(network, *starts));
  // In reversed time, the remaining path from the start of an operation is the end of its mirror
  // image.
  std::vector<std::vector<std::int32_t>> backwards = expected_orders;
  for (auto& order : backwards) std::reverse(order.begin(), order.end());
  const std::optional<Starts> tails = starts_of_orders(reversed(network), backwards);
  ASSERT_TRUE(tails);
  for (std::int32_t o = 0; o < network.size(); ++o) {
    const auto i = static_cast<std::size_t>(o);
    EXPECT_EQ(orders.remaining(o), (*tails)[i] + network.duration[i]) << "operation " << o;
    EXPECT_EQ(orders.order(static_cast<std::size_t>(network.machine[i]))[orders.position(o)], o);
  }
}

/// Random moves: after each one the paths must equal newly computed ones, and a move is rejected
/// exactly if the resulting orders are contradictory.
void expect_moves_keep_paths(Placement placement, int microbatches, std::uint32_t seed) {
  const SynthesisRequest request = random_request(seed, std::move(placement), microbatches);
  OperationNetwork network =
      make_operation_network(request.placement, microbatches, request.times, request.caps);
  if (seed % 2 == 0) aim_at_period(network);
  std::vector<std::int64_t> by_sequence(static_cast<std::size_t>(network.size()));
  for (std::int32_t o = 0; o < network.size(); ++o)
    by_sequence[static_cast<std::size_t>(o)] = -network.microbatch_of(o);
  ScheduleBuilder builder(network);
  const std::optional<Starts> starts = builder.dispatch(by_sequence, 0);
  if (!starts) return;  // a deadlock of memory
  TimedOrders orders(network);
  ASSERT_TRUE(orders.load(*starts));
  std::vector<std::vector<std::int32_t>> expected(orders.machines());
  for (std::size_t m = 0; m < expected.size(); ++m) expected[m] = orders.order(m);
  std::mt19937 random(seed);
  for (int step = 0; step < 60; ++step) {
    const std::size_t machine = random() % expected.size();
    auto& order = expected[machine];
    const OrderMove move{machine, random() % order.size(), random() % order.size()};
    if (!move.exists() || !is_allowed(network, order, move)) continue;
    auto next = expected;
    next[machine].erase(next[machine].begin() + static_cast<std::ptrdiff_t>(move.from));
    next[machine].insert(next[machine].begin() + static_cast<std::ptrdiff_t>(move.to),
                         order[move.from]);
    const bool is_consistent = starts_of_orders(network, next).has_value();
    EXPECT_EQ(orders.perform(move), is_consistent) << "step " << step;
    if (is_consistent) expected = next;
    expect_paths_of(network, orders, expected);
  }
}

TEST(TimedOrders, KeepLongestPathsThroughAnyMoves) {
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    expect_moves_keep_paths(looped_placement(4, 1), 6, seed);
    expect_moves_keep_paths(wave_placement(3, 2), 4, seed);
    expect_moves_keep_paths(looped_placement(1, 1), 3, seed);
  }
}

TEST(TimedOrders, RefuseWhatContradictsOtherMachines) {
  // Two stages, one micro-batch: F0 (device 0) → F1 → I1 (device 1) → I0 (device 0). I0 before F0
  // would close a cycle through device 1; neither is a direct neighbor of the other.
  const OperationNetwork network = make_operation_network(
      looped_placement(2, 1), 1, uniform_times(2, Ticks(1), Ticks(1), Ticks(1)), {});
  TimedOrders orders(network);
  ASSERT_TRUE(orders.load(earliest_starts(network)));
  EXPECT_EQ(orders.value(), Ticks(5));  // F0 F1 I1 I0 W0
  EXPECT_FALSE(orders.perform({.machine = 0, .from = 1, .to = 0}));
  EXPECT_EQ(orders.value(), Ticks(5));
  EXPECT_EQ(orders.order(0)[0], network.id(0, 0, 0));
}

}  // namespace
}  // namespace meshwright
