/// How the data axis cuts the parameters of one part of the model: read off the collectives that
/// the task graph has for them.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/collectives.hpp"
#include "executor/rank_run.hpp"

namespace meshwright {

/// Elements of a run (the dense or the expert parameters of a part) whose gradients are scattered
/// together.
struct ParameterPiece {
  Block all;               ///< of the run
  Block own;               ///< of the run, within `all`: this rank keeps their state, updates them
  std::int64_t place = 0;  ///< of the first own element among those of all pieces
  friend bool operator==(const ParameterPiece&, const ParameterPiece&) = default;
};

struct RunLayout {
  std::vector<ParameterPiece> pieces;  ///< rising, without gaps; none: one that is all this rank's
  /// Held from step to step: own elements only (ZeRO 2 and 3, and 3; servers).
  bool cuts_gradients = false, cuts_weights = false;
  /// Passes for inputs are apart from those for weights, and make some gradients of weights
  /// already.
  bool splits_backward = false;
  int weight_versions = 1;     ///< held side by side: schedules without a flush
  bool has_state = true;       ///< this rank updates what it owns
  bool state_on_host = false;  ///< where the processor updates it
  std::int64_t own_elements() const;
  friend bool operator==(const RunLayout&, const RunLayout&) = default;
};

/// [0]: dense parameters, [1]: experts.
using RunLayouts = std::array<RunLayout, 2>;

/// Where gradients are scattered, each rank owns the blocks that it gets; else everything.
RunLayouts layouts_of(const RunnableGraph& runnable, const Strategy& strategy, RankId rank,
                      int part);

/// What a ring all-reduce or its first half leaves whole at member `index` of a ring.
Block block_after_ring(std::int64_t elements, int members, int index);

Block intersection(const Block& a, const Block& b);  ///< may be of size 0, never less

}  // namespace meshwright
