/// Cuts a model's blocks into consecutive pipeline stages so that the slowest stage is as fast as
/// it can be.
#pragma once

#include <span>
#include <vector>

#include "core/units.hpp"

namespace meshwright {

/// What the layers take per micro-batch (forward and backward together). The embedding belongs to
/// the first stage, the head to the last.
struct LayerTimes {
  Ticks embedding, head;
  std::vector<Ticks> blocks;
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// A stage needs one layer at least. The first and the last stage have the embedding and the head,
/// so a model of L blocks makes at most L + 2 stages.
constexpr bool can_cut(int blocks, int stages) {
  return stages >= 1 && (stages == 1 || stages <= blocks + 2);
}

/// Blocks per stage; the sum over stages is times.blocks.size(). Exact minimum of the slowest
/// stage. Among the cuts that reach it: the least sum of squared block counts (the equal cut, if
/// that is as good), then fewest blocks in the earliest stages, which hold most activations.
/// Needs can_cut(). O(L log(total time) + stages * L * (blocks in the largest stage)).
std::vector<int> cut_blocks(const LayerTimes& times, int stages);

/// The same where stages run on devices of different speeds: what the layers take on each stage's
/// device, by stage. O(stages * L^2).
std::vector<int> cut_blocks_for(std::span<const LayerTimes> times_of_stage);

/// A cut that looks at block counts only: even, the remainder in the middle. Needs can_cut().
std::vector<int> even_cut(int blocks, int stages);

/// Time of the slowest stage under a cut; O(L).
Ticks slowest_stage(const LayerTimes& times, std::span<const int> blocks_per_stage);
/// With the times of each stage's device.
Ticks slowest_stage_of(std::span<const LayerTimes> times_of_stage,
                       std::span<const int> blocks_per_stage);

}  // namespace meshwright
