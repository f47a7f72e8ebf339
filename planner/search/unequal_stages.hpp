/// Partitions the blocks of a model into pipeline stages on devices of different types.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "planner/search/stage_partition.hpp"

namespace meshwright {

/// Stages on devices of several types.
struct UnequalStages {
  std::vector<LayerTimes> of_kind;  ///< by type: of the same layers; empty for types not used
  std::vector<std::int32_t> kind_of_stage;
  std::vector<int> most_of_kind = {};  ///< blocks of a stage; empty: not limited
};

/// Blocks per stage, as cut_blocks(): the exact minimum of the slowest stage, then the smallest sum
/// of squared block counts, then the fewest blocks in the earliest stages. Requires can_cut() and
/// limits that leave room for all blocks. O(log(total time)) if all blocks take the same time, else
/// O(stages * L^2).
std::vector<int> cut_blocks_for(const UnequalStages& stages);

/// Time of the slowest stage of a partition; O(L).
Ticks slowest_stage_of(const UnequalStages& stages, std::span<const int> blocks_per_stage);

}  // namespace meshwright
