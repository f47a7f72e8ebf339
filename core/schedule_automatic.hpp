/// The automatic scheduler of Zero Bubble (Qi et al., arXiv:2401.10241, 3.1) for one stage per
/// device: rounds of one forward and one input gradient per device, weight gradients in the gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule.hpp"

namespace meshwright {

/// The choices that the paper leaves to a grid search.
struct AutomaticChoices {
  /// Run one more forward before the first backward although it delays that backward.
  bool crowd_first_backward = false;
  /// Leave a forward out of a round while the next device has one in store: where it would delay
  /// the next input gradient (kWhenLate: at all; kWhenVeryLate: by more than half a forward) and
  /// the device then still waits no longer than the one that has waited longest; or wherever it can
  /// be done.
  enum class HoldBack { kNever, kWhenLate, kWhenVeryLate, kAlways } hold_back = HoldBack::kNever;
  /// Put a weight gradient into a gap that is too small for it.
  enum class Squeeze { kNever, kWhenWaitedMost, kAlways } squeeze = Squeeze::kNever;
  /// Every device keeps at least one forward more than its successor, from the warm-up on.
  bool stay_ahead = true;
  friend bool operator==(const AutomaticChoices&, const AutomaticChoices&) = default;
};

/// What the scheduler decides by. Caps are per device and absolute, in micro-batches.
struct AutomaticTask {
  int microbatches = 1;
  StageTimes times;  ///< one entry per device
  std::vector<double> activation_caps;
  /// Fraction of an activation that its input gradient frees; the weight gradient frees the rest.
  double freed_by_input_gradient = 0;
};

/// Passes by device, in order: micro-batches are taken first in, first out.
using PassOrders = std::vector<std::vector<Pass>>;

/// The orders of one choice, and the figures that time_schedule() would give for them.
struct AutomaticOrders {
  PassOrders passes;
  Ticks period;
  Ticks makespan;
};

/// Linear in p m, up to a factor of p for short pipelines of many devices.
AutomaticOrders schedule_automatically(const AutomaticTask& task, const AutomaticChoices& choices);

/// The best of all choices by period, then by makespan. The orders of zb-h1 and zb-h2 compete where
/// they fit the caps.
Schedule best_automatic_schedule(const AutomaticTask& task);

}  // namespace meshwright
