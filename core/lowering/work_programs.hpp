/// Programs of the passes over a slice of a stage: the steps with the buffers they acquire, and
/// what a pass therefore holds.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/lowering/buffer_lifetimes.hpp"
#include "core/lowering/layers.hpp"

namespace meshwright {

/// One layer of a slice.
struct SliceLayer {
  LayerId layer;
  LayerParts parts;         ///< of its class
  LayerCall call;           ///< of its variant
  bool recomputes = false;  ///< `parts.recompute` comes before its backward pass
};
struct SliceLayers {
  std::vector<SliceLayer> layers;
  const SavedTensors* saved = nullptr;  ///< of the whole stage
  /// The previous or next layers run on the same device: boundary tensors are not held twice.
  bool previous_is_here = false, next_is_here = false;
  bool is_first = true, is_last = true;  ///< of the slices of the stage
};

/// Same meaning as in Work. At the moment of the largest total, each class amounts to held +
/// acquired + transient, so `transient` is negative for a class that shrinks before that moment.
struct PassMemory {
  MemoryAmounts acquired, released, transient;
  /// Received from another device (held from the start of the pass) and sent to another device
  /// (held until its end); both are held longer if another pass overlaps.
  MemoryAmounts arrives, departs;
};
struct SlicePass {
  WorkProgram program;
  PassMemory memory;
};
/// By pass of a slice.
struct SliceMemory {
  PassMemory forward, backward, backward_input, backward_weight;
};
/// The passes over a slice. The number of expert rows follows ExpertRouting.
struct SlicePasses {
  SlicePass forward, backward, backward_input, backward_weight;
};
SlicePasses slice_passes(const ModelGraph& model, const SliceLayers& slice);

}  // namespace meshwright
