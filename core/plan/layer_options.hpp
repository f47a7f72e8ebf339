/// Per-layer options: of single blocks, in place of those of the whole plan, as Galvatron
/// (arXiv 2211.13878) and Mist (arXiv 2503.19050) search them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/recompute.hpp"

namespace meshwright {

/// A value for consecutive blocks of the model, counted from 0.
template <class Value>
struct OfBlocks {
  int first = 0, last = 0;  ///< both included
  Value value = {};
  friend bool operator==(const OfBlocks&, const OfBlocks&) = default;
};

/// Each list in the order of the blocks, without overlaps.
struct LayerOptions {
  std::vector<OfBlocks<Recompute>> recompute;         ///< of whole blocks (kFull) or operators
  std::vector<OfBlocks<bool>> reshard_after_forward;  ///< ZeRO 3; see DataParallelism
  /// Tensor-parallel size: that of the plan, or 1. Then the tensor ranks hold whole weights and
  /// share the tokens instead, as under sequence parallelism, with an all-to-all before and after
  /// attention (DeepSpeed-Ulysses, arXiv 2309.14509); gradients are summed over them.
  std::vector<OfBlocks<int>> tensor;
  bool empty() const {
    return recompute.empty() && reshard_after_forward.empty() && tensor.empty();
  }
  friend bool operator==(const LayerOptions&, const LayerOptions&) = default;
};
/// "0-7:recompute=full+8:recompute=none+60-79:fsdp-reshard=no+3:tp=1"; "" if empty.
std::string to_text(const LayerOptions& options);
/// In any order of blocks. Empty if invalid; blocks that overlap are valid here.
std::optional<LayerOptions> layer_options_from_text(std::string_view text);

/// The value of a block; null: that of the plan.
template <class Value>
const Value* value_of_block(const std::vector<OfBlocks<Value>>& values, int block) {
  for (const OfBlocks<Value>& of : values)
    if (of.first <= block && block <= of.last) return &of.value;
  return nullptr;
}

}  // namespace meshwright
