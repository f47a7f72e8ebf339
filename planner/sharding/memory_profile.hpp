/// Memory in use over time by strategy of every node, at the times at which a limit can be
/// exceeded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/sharding_problem.hpp"

namespace meshwright {

/// Strategy of every node.
using Strategies = std::vector<std::int32_t>;

/// The memory of one node: it is 0 before the first change.
struct MemoryChanges {
  std::vector<std::int32_t> times;  ///< ascending
  std::vector<double> differences;  ///< by time, then strategy

  std::span<const double> at(std::size_t change) const {
    const std::size_t strategies = differences.size() / times.size();
    return {differences.data() + change * strategies, strategies};
  }
};

/// Sorts the changes; adds up those at the same time, and leaves out those that change nothing.
void normalize(MemoryChanges& changes);

/// Calls visit(first, last, usages) for the pieces of time [first, last) in which the memory of a
/// node stays the same, from its first change on; `usages` by strategy.
template <class Visit>
void for_each_piece(const MemoryChanges& changes, std::size_t time_count, const Visit& visit) {
  std::vector<double> usages;
  for (std::size_t i = 0; i < changes.times.size(); ++i) {
    const std::span<const double> differences = changes.at(i);
    usages.resize(differences.size(), 0);
    for (std::size_t k = 0; k < usages.size(); ++k) usages[k] += differences[k];
    const std::size_t last =
        i + 1 < changes.times.size() ? static_cast<std::size_t>(changes.times[i + 1]) : time_count;
    visit(static_cast<std::size_t>(changes.times[i]), last, std::span<const double>(usages));
  }
}

struct MemoryProfile {
  /// By time: what the limit leaves for the nodes, beside what does not depend on strategies. Empty
  /// without a limit, or if no choice of strategies exceeds it.
  std::vector<double> left;
  std::vector<double> multipliers;   ///< by time: the price of a byte
  std::vector<MemoryChanges> nodes;  ///< without normalize() the order of changes is free

  std::size_t time_count() const { return left.size(); }
};

/// Its times are those at which the nodes in use are not part of those of a neighboring time.
MemoryProfile memory_profile(const ShardingProblem& problem);

/// Without the times at which the limit cannot be exceeded, and those at which the memory is never
/// more than at a neighboring time, whatever the strategies; their multipliers are added to those
/// of that time. Expects normalized changes.
MemoryProfile binding_times(const MemoryProfile& profile);

/// Of nodes at all times.
std::vector<double> usages_of(const MemoryProfile& profile, const Strategies& chosen);
bool fits(const MemoryProfile& profile, std::span<const double> usages);
/// What the memory that is left costs.
double price_of_limit(const MemoryProfile& profile);
/// Subgradient ascent: raises the multipliers of times above the limit, and lowers those below it,
/// by Polyak's step towards a bound that is higher by `rise`.
void ascend(std::span<const double> usages, double rise, MemoryProfile& profile);

}  // namespace meshwright
