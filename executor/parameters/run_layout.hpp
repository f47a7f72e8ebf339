/// How data parallelism shards the parameters of a model chunk, derived from the collectives of the
/// task graph.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "executor/tasks/runnable_graph.hpp"
#include "executor/transport/collectives.hpp"

namespace meshwright {

/// Consecutive elements of a run (the dense or the expert parameters of a chunk) that one
/// reduce-scatter covers.
struct ParameterPiece {
  Block all;               ///< in the run
  Block own;               ///< in the run, within `all`: updated by this rank, with optimizer state
  std::int64_t place = 0;  ///< index of the first owned element among those of all pieces
  friend bool operator==(const ParameterPiece&, const ParameterPiece&) = default;
};

struct RunLayout {
  std::vector<ParameterPiece>
      pieces;  ///< ascending, without gaps; empty: this rank owns everything
  /// Only owned elements are stored between steps: gradients with ZeRO-2 and ZeRO-3, weights with
  /// ZeRO-3 and on servers.
  bool shards_gradients = false, shards_weights = false;
  /// Backward-input and backward-weight passes are separate, and the former computes some weight
  /// gradients.
  bool splits_backward = false;
  int weight_versions = 1;     ///< stashed weights of flushless schedules
  bool has_state = true;       ///< this rank updates what it owns
  bool state_on_host = false;  ///< optimizer offload: updated by the CPU
  std::int64_t own_elements() const;
  friend bool operator==(const RunLayout&, const RunLayout&) = default;
};

/// [0]: dense parameters, [1]: experts.
using RunLayouts = std::array<RunLayout, 2>;

/// With reduce-scattered gradients each rank owns the blocks it receives, otherwise everything.
RunLayouts layouts_of(const RunnableGraph& runnable, const Strategy& strategy, RankId rank,
                      int part);

/// The block that is fully reduced on member `index` after the first half of a ring all-reduce.
Block block_after_ring(std::int64_t elements, int members, int index);

Block intersection(const Block& a, const Block& b);  ///< may be empty

}  // namespace meshwright
