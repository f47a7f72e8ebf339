/// Detects NaN and infinity where they first occur: one step later every parameter would be NaN.
///
/// The forward pass checks the output of every layer while it is in the cache: H numbers per token,
/// against about 24 H^2 multiplications per transformer block. Only if one is not finite, the
/// operators of the layer are searched for the first at fault. Outputs are checked before they are
/// sent, so the first rank to stop is the one where the problem started. Gradients are checked
/// through their norm, which is computed anyway.
#pragma once

#include <vector>

#include "executor/operators/microbatch_state.hpp"
#include "executor/ranks/rank_context.hpp"

namespace meshwright {

class FiniteChecks {
 public:
  explicit FiniteChecks(RankContext& rank) : rank_(rank) {}

  void begin_step() { unchecked_.clear(); }
  /// If the layer's output is not finite, throws and names the first operator at fault. With a
  /// queue the host runs ahead: the check is enqueued, and settle() throws.
  void check_layer(MicrobatchState& state, LayerId layer, std::int64_t step);
  /// Waits for the device.
  void settle();
  /// Throws if the gradients with this squared norm are not finite.
  void check_gradients(float squared_norm, std::int64_t step);

 private:
  bool is_finite_on_device(MicrobatchState& state, LayerId layer, std::int64_t step);

  struct LayerNorm {
    LayerId layer;
    std::int64_t step;
    OwnedMatrix squared;  ///< one number
  };
  RankContext& rank_;
  std::vector<LayerNorm> unchecked_;
};

}  // namespace meshwright
