/// Lower bounds of the simulated step time and peak memory of a candidate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/lowering/lower.hpp"
#include "core/schedule/schedule.hpp"
#include "planner/search/held_activations.hpp"
#include "planner/search/layer_times.hpp"

namespace meshwright {

/// Work after the passes of a step, independent of the number of micro-batches.
struct StepEndTimes {
  /// By pipeline rank: reduction of the gradients completed by its last pass.
  std::vector<Ticks> reduction;
  /// After all gradients are reduced: gradient norm, slowest update, all-gather of weights.
  Ticks rest;
  /// Of the rank with the most: collectives before the update on one stream, which also run beside
  /// passes, without `gathers`.
  Ticks communication;
  /// Parameter gathers of the passes of one stage. A pass may start with the unit that the pass
  /// before it ended with and that is still gathered: if it goes the other way, or if the stage has
  /// one unit only.
  struct StageGathers {
    std::size_t rank = 0;
    StageId stage;
    Ticks pass, largest_unit;  ///< all units; the one that takes longest
    bool has_one_unit() const { return largest_unit == pass; }
    friend bool operator==(const StageGathers&, const StageGathers&) = default;
  };
  std::vector<StageGathers> gathers = {};
  std::vector<Ticks> beside_gathers = {};  ///< by rank: other collectives on their stream
  /// By rank: `communication` of its busiest stream, all of it after a first backward pass. Empty:
  /// not known.
  std::vector<Ticks> reductions = {};
  bool reduces_in_last_pass = false;  ///< `reductions` start in the last backward pass of a stage
  friend bool operator==(const StepEndTimes&, const StepEndTimes&) = default;
};

/// Computed from a lowered graph of representatives (any number of micro-batches) and its prices.
/// Gathers are counted if parameters are gathered for both passes of every micro-batch (ZeRO 3 with
/// resharding, at most one unit ahead), with or without the embedding and the head. The other
/// collectives of micro-batches before `first_counted` are left out, as in a graph with so many
/// fewer.
enum class CountedGathers : std::uint8_t { kNone, kWithoutEnds, kAll };
StepEndTimes step_end_times(const TaskGraph& graph, std::span<const WorkPrice> prices,
                            CountedGathers counted = CountedGathers::kNone,
                            std::int64_t first_counted = 0);

/// Lower bound of the time that the gathers and the other collectives of their stream take on the
/// rank with the most, in the order of `schedule`. O(actions).
Ticks time_with_gathers(const StepEndTimes& end, const Schedule& schedule);

/// Lower bound of the step time of a pipeline with flush; `parts` by part of the model.
///
/// One machine with a head and a tail: device d can start when the first micro-batch has passed the
/// earlier stages; it then runs all its passes; after its last backward the gradient still has to
/// pass the earlier stages. So, for every device,
///   last backward >= sum of F before it + m * (F + B of its stages) + sum of B before it.
/// Messages are free, so that it remains a bound. With equal stages and free messages it is exactly
/// (m + (p - 1) / v) (F + B), which 1F1B, GPipe and interleaved 1F1B reach
/// (arXiv 2104.04473, section 2.2).
///
/// If the schedule splits backwards, no stage waits for weight gradients: the tail follows
/// m * (F + I), and no tail follows m * (F + B).
///
/// Each micro-batch also has to pass all stages forward and back, which takes longer if there are
/// fewer micro-batches than devices.
///
/// Gradient reductions that cannot start earlier are added, and after the barrier of the gradient
/// norm the rest of the step. A stream that is busy with communication for longer decides instead:
/// it starts when a gradient has come back to the device, at the earliest; or when the device has
/// done all but its last backward pass, if it holds one stage and reduces once.
Ticks step_bound(const Placement& placement, std::span<const PassTimes> parts,
                 std::int64_t microbatches, bool splits_backward, const StepEndTimes& step_end);

/// Lower bound of peak_of_passes() without the order of the passes: after every rank has come to
/// hold what it does at one of the moments, one of its passes runs as a whole, unless passes are
/// cut into smaller tasks (cuts_passes()). O(stages).
std::vector<Bytes> least_peaks(const LoweredStages& lowered, const Placement& placement,
                               std::span<const HeldActivations> moments, bool splits_backward,
                               bool has_whole_passes);

/// Peak memory of every pipeline rank when it runs `schedule`: resident memory plus what its passes
/// acquire and release, in their order. The optimizer step is not included, so this is a lower
/// bound of the simulated peak, and equal to it if the peak is reached in a pass. O(actions).
std::vector<Bytes> peak_of_passes(const LoweredStages& lowered, const Schedule& schedule);

}  // namespace meshwright
