/// Partitions the blocks of a model into consecutive pipeline stages, minimizing the time of the
/// slowest stage.
#pragma once

#include <span>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// Times of the layers per micro-batch (forward plus backward). The embedding belongs to the first
/// stage, the head to the last.
struct LayerTimes {
  Ticks embedding, head;
  std::vector<Ticks> blocks;
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// A stage needs at least one layer. The first and the last stage have the embedding and the head,
/// so a model with L blocks has at most L + 2 stages.
constexpr bool can_cut(int blocks, int stages) {
  return stages >= 1 && (stages == 1 || stages <= blocks + 2);
}

/// Blocks per stage; their sum is times.blocks.size(). Exact minimum of the slowest stage. Ties are
/// broken by the smallest sum of squared block counts (the equal partition, if it is optimal), then
/// by the fewest blocks in the earliest stages, which hold the most activations. Requires
/// can_cut(). O(L log(total time) + stages * L * (blocks in the largest stage)).
std::vector<int> cut_blocks(const LayerTimes& times, int stages);

/// A partition by block counts only: even, with the remainder in the middle. Requires can_cut().
std::vector<int> even_cut(int blocks, int stages);

/// The smallest time in [low, high] for which `holds`. Requires that it holds for `high` and for
/// every time above one for which it holds.
template <class Predicate>
Ticks least_time(Ticks low, Ticks high, const Predicate& holds) {
  while (low < high) {
    const Ticks middle(low.value + (high - low).value / 2);
    if (holds(middle))
      high = middle;
    else
      low = middle + Ticks(1);
  }
  return low;
}

/// Time of the slowest stage of a partition; O(L).
Ticks slowest_stage(const LayerTimes& times, std::span<const int> blocks_per_stage);
}  // namespace meshwright
