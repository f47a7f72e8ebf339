#include "planner/synthesis/schedule_bounds.hpp"

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

namespace meshwright {
namespace {
/// Jackson's preemptive schedule of one machine: largest end + tail.
Ticks jackson_bound(std::vector<std::int32_t> operations, const std::vector<Ticks>& heads,
                    const std::vector<Ticks>& tails, std::vector<Ticks> left) {
  std::sort(operations.begin(), operations.end(), [&](std::int32_t a, std::int32_t b) {
    return std::pair(heads[at(a)], a) < std::pair(heads[at(b)], b);
  });
  std::priority_queue<std::pair<Ticks, std::int32_t>> open;  // by tail
  Ticks now, bound;
  for (std::size_t next = 0; next < operations.size() || !open.empty();) {
    if (open.empty()) now = std::max(now, heads[at(operations[next])]);
    for (; next < operations.size() && heads[at(operations[next])] <= now; ++next)
      open.emplace(tails[at(operations[next])], operations[next]);
    const auto [tail, operation] = open.top();
    const Ticks interruption =
        next < operations.size() ? heads[at(operations[next])] : Ticks::max();
    if (Ticks& rest = left[at(operation)]; now + rest <= interruption) {
      now += rest;
      bound = std::max(bound, now + tail);
      open.pop();
    } else {
      rest -= interruption - now;
      now = interruption;
    }
  }
  return bound;
}
}  // namespace

Ticks work_bound(const OperationNetwork& network) {
  Ticks bound;
  for (const auto& operations : network.of_machine) {
    Ticks work;
    for (const std::int32_t o : operations) work += network.duration[at(o)];
    bound = std::max(bound, work);
  }
  return bound;
}

Ticks one_machine_bound(const OperationNetwork& network) {
  const std::vector<Ticks> heads = earliest_starts(network);
  const std::vector<Ticks> tails = earliest_starts(reversed(network));
  Ticks bound;
  for (const auto& operations : network.of_machine)
    bound = std::max(bound, jackson_bound(operations, heads, tails, network.duration));
  return bound;
}

Ticks refutation_bound(const OperationNetwork& network, ConstraintPropagation& propagation,
                       Ticks bound, Ticks known, std::int64_t most_visits) {
  constexpr std::int64_t kFirstStep = 1024, kFinest = 16384;  // fractions of the bound
  const std::int64_t grain = network.grain.value;
  const std::int64_t last_visit = propagation.visits() + most_visits;
  const auto on_grain = [&](std::int64_t time) {
    return Ticks((time + grain - 1) / grain * grain);
  };
  Ticks low = on_grain(bound.value);  // smallest target not refuted
  Ticks high = known;                 // not refutable
  for (Ticks step = on_grain(bound.value / kFirstStep);
       low < high && propagation.visits() < last_visit; step = step + step) {
    const Ticks target = std::min(low == bound ? low : low + step, high - network.grain);
    if (propagation.could_meet(target, most_visits)) {
      high = target;
      break;
    }
    low = target + network.grain;
  }
  const Ticks finest = on_grain(bound.value / kFinest);
  while (high - low >= finest && low < high && propagation.visits() < last_visit) {
    const Ticks middle = low + on_grain((high - low).value / 2) - network.grain;
    if (propagation.could_meet(middle, most_visits))
      high = middle;
    else
      low = middle + network.grain;
  }
  return low;
}

}  // namespace meshwright
