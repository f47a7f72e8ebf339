/// What no simulation of a candidate can beat.
#pragma once

#include <span>
#include <vector>

#include "core/cost_model.hpp"
#include "core/lower.hpp"
#include "core/schedule.hpp"
#include "core/task_graph.hpp"
#include "core/units.hpp"
#include "planner/layer_times.hpp"

namespace meshwright {

/// What follows the passes in every step, whatever the number of micro-batches.
struct StepEndTimes {
  /// By pipeline position: reducing the gradients of the parts that its last pass completes.
  std::vector<Ticks> reduction;
  /// From the moment when all gradients are reduced: norm, the slowest update, gathered weights.
  Ticks rest;
  friend bool operator==(const StepEndTimes&, const StepEndTimes&) = default;
};

/// Read off a lowered graph of representatives (any number of micro-batches) and its prices.
StepEndTimes step_end_times(const TaskGraph& graph, std::span<const WorkPrice> prices);

/// Lower bound of the step time of a flushed pipeline; `parts` by part of the model.
///
/// One machine with a head and a tail: device d can start when the first micro-batch has passed the
/// stages in front of it; it has all its passes to do; and after its last backward the gradient
/// still has to pass the stages in front of it. So, for every device,
///   last backward >= sum of F before it + m * (F + B of its stages) + sum of B before it.
/// Messages are taken as free, which keeps it a bound. Equal stages and free messages: exactly
/// (m + (p - 1) / v) (F + B), which 1F1B, GPipe and interleaved 1F1B reach
/// (arXiv 2104.04473, section 2.2).
///
/// If the schedule splits backwards, nobody waits for weight gradients: the tail follows
/// m * (F + I), and no tail follows m * (F + B).
///
/// Then come the reductions that cannot start earlier and, behind the barrier of the gradient norm,
/// the rest of the step.
Ticks step_bound(const Placement& placement, std::span<const PassTimes> parts,
                 std::int64_t microbatches, bool splits_backward, const StepEndTimes& step_end);

/// Peak memory of every device [by pipeline position] when it carries out `schedule`: resident
/// memory and what the passes hold, in their order. Leaves out what the optimizer step needs on
/// top, so it is a lower bound of the simulated peak, and equal to it if a pass makes the peak.
/// O(actions).
std::vector<Bytes> peak_of_passes(const LoweredStages& lowered, const Schedule& schedule);

}  // namespace meshwright
