/// The activations that pipeline ranks hold at one moment, as a lower bound of their peaks.
#pragma once

#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/schedule/schedule.hpp"

namespace meshwright {

/// Of one micro-batch on one stage.
struct SavedBytes {
  Bytes whole;        ///< from the forward to the backward pass, or to the pass for input gradients
  Bytes to_weight;    ///< then to the pass for weight gradients
  Bytes shared = {};  ///< by all whole micro-batches of the stage
};

/// What every rank holds at a moment of its own.
struct HeldActivations {
  struct OfStage {
    int whole = 0, to_weight = 0;  ///< micro-batches
  };
  std::vector<OfStage> of_stage;
  /// By rank: further micro-batches, of any of its stages. Below zero: some of the others may not
  /// be held.
  std::vector<double> of_any;
};

/// When the ranks hold the most micro-batches of stages. If backward passes are split, three more:
/// of these moments the one with the most that wait for weight gradients, the most whole ones, and
/// the most that wait for weight gradients. O(passes).
std::vector<HeldActivations> held_at_peaks(const Schedule& schedule);

/// By rank: bytes of what it holds, at least. `saved`: by stage.
std::vector<Bytes> bytes_of(const HeldActivations& held, const Placement& placement,
                            std::span<const SavedBytes> saved);
/// At the moment with the most of them.
std::vector<Bytes> most_bytes_of(std::span<const HeldActivations> moments,
                                 const Placement& placement, std::span<const SavedBytes> saved);

}  // namespace meshwright
