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

/// A layer of a stage, and what its backward pass repeats.
struct SavedLayer {
  LayerId layer;
  bool is_recomputed = false;      ///< as a whole
  bool repeats_attention = false;  ///< see the function of this name
};

/// The saved activations of a stage: those its operators declare; for a fully recomputed layer,
/// only the layer's inputs.
class SavedTensors {
 public:
  SavedTensors() = default;
  SavedTensors(const ModelGraph& model, std::span<const SavedLayer> layers);
  bool is_recomputed(LayerId layer) const {
    return std::binary_search(recomputed_.begin(), recomputed_.end(), layer.value);
  }
  bool has(TensorId tensor) const {
    return std::binary_search(saved_.begin(), saved_.end(), tensor.value);
  }
  bool exchanges_heads_again(LayerId layer) const {
    return std::binary_search(repeats_attention_.begin(), repeats_attention_.end(), layer.value);
  }

 private:
  std::vector<std::int32_t> recomputed_, repeats_attention_, saved_;  ///< sorted
};

/// Buffers to release after this visit of the operator. O(operators of the layer).
std::vector<BufferKey> released_after(const ModelGraph& model, const SavedTensors& saved,
                                      LayerId layer, OperatorId op, Visit visit);

}  // namespace meshwright
