/// How alike blocks divide a memory budget: a choice per block, so that their time is short.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"

namespace meshwright {

/// What a block takes and holds with one choice.
struct BlockChoice {
  Ticks time;
  Bytes held;
};
struct AlikeBlocks {
  int count = 0;
  std::vector<BlockChoice> choices;  ///< not empty; of each block
};
/// By group, then by choice: the number of blocks with it.
using BlockCounts = std::vector<std::vector<int>>;

/// The multiple-choice knapsack problem by its linear relaxation (Sinha and Zoltners, Operations
/// Research 27, 1979): steps along the convex hulls of the choices, the most time saved per byte
/// first, then whatever still fits. Slower than the fastest counts by less than the largest step of
/// one block. nullopt: not even the choices that hold least fit. O(groups choices^2 log).
std::optional<BlockCounts> fast_choices(std::span<const AlikeBlocks> groups, Bytes budget);

Ticks time_of(std::span<const AlikeBlocks> groups, const BlockCounts& counts);
Bytes held_by(std::span<const AlikeBlocks> groups, const BlockCounts& counts);

}  // namespace meshwright
