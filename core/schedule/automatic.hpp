/// The automatic scheduler of Zero Bubble (Qi et al., arXiv:2401.10241, 3.1) with one stage per
/// device: rounds of one forward and one input gradient per device; weight gradients fill the gaps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// The options that the paper selects by grid search.
struct AutomaticChoices {
  /// Run one more forward before the first backward even if it delays that backward.
  bool crowd_first_backward = false;
  /// Skip the forward of a round while the next device still has a forward to run. kWhenLate,
  /// kWhenVeryLate: if the forward would delay the next input gradient at all, or by more than half
  /// a forward, and skipping it does not make this device the one that has waited longest. kAlways:
  /// whenever possible.
  enum class HoldBack { kNever, kWhenLate, kWhenVeryLate, kAlways } hold_back = HoldBack::kNever;
  /// Run a weight gradient in a gap that is too short for it.
  enum class Squeeze { kNever, kWhenWaitedMost, kAlways } squeeze = Squeeze::kNever;
  /// Every device stays at least one forward ahead of its successor, starting with the warm-up.
  bool stay_ahead = true;
  friend bool operator==(const AutomaticChoices&, const AutomaticChoices&) = default;
};

/// Rounding error of caps and fractions, in micro-batches.
inline constexpr double kCapRounding = 1e-9;

/// Input of the scheduler. Caps are absolute, per device, in micro-batches.
struct AutomaticTask {
  int microbatches = 1;
  StageTimes times;  ///< one entry per device
  std::vector<double> activation_caps;
  /// Fraction of an activation that its input gradient frees; the weight gradient frees the rest.
  double freed_by_input_gradient = 0;
};

/// Passes by device, in order; micro-batches are processed first in, first out.
using PassOrders = std::vector<std::vector<Pass>>;

/// The orders for one set of choices, with the period and makespan that time_schedule() computes.
struct AutomaticOrders {
  PassOrders passes;
  Ticks period;
  Ticks makespan;
};

/// Linear in p m, up to a factor of p for short pipelines of many devices.
AutomaticOrders schedule_automatically(const AutomaticTask& task, const AutomaticChoices& choices);

/// The best schedule over all choices by period, then makespan. Also considers zb-h1 and zb-h2 if
/// they fit the caps.
Schedule best_automatic_schedule(const AutomaticTask& task);

}  // namespace meshwright
