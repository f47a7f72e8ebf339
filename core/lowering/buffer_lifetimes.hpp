/// When the buffers of a layer are released: once a pass is done with an operator, the buffers that
/// neither a later operator of the pass nor a later pass reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/model/model_graph.hpp"
#include "core/operators/buffers.hpp"
#include "core/plan/plan.hpp"

namespace meshwright {

/// How a pass visits an operator.
enum class Visit : std::uint8_t {
  kForward,
  kRecompute,       ///< forward again, before the layer's backward visits
  kBackward,        ///< gradients of inputs and weights
  kBackwardInput,   ///< gradients of inputs only
  kBackwardWeight,  ///< gradients of weights, later
};

/// The saved activations of a stage: those its operators declare; for a fully recomputed layer,
/// only the layer's inputs.
class SavedTensors {
 public:
  SavedTensors() = default;
  /// `part`: of the model, see Placement::part_of_stage.
  SavedTensors(const ModelGraph& model, std::span<const LayerId> layers, const Strategy& strategy,
               int part);
  bool is_recomputed(LayerId layer) const {
    return std::binary_search(recomputed_.begin(), recomputed_.end(), layer.value);
  }
  bool has(TensorId tensor) const {
    return std::binary_search(saved_.begin(), saved_.end(), tensor.value);
  }
  bool exchanges_heads_again() const { return exchanges_heads_again_; }

 private:
  std::vector<std::int32_t> recomputed_, saved_;  ///< sorted
  bool exchanges_heads_again_ = false;
};

/// Buffers to release after this visit of the operator. O(operators of the layer).
std::vector<BufferKey> released_after(const ModelGraph& model, const SavedTensors& saved,
                                      LayerId layer, OperatorId op, Visit visit);

}  // namespace meshwright
