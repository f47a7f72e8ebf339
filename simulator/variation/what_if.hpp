/// What-if analysis: replaces the cost model's prices of passes and messages before a graph is
/// simulated. Order, memory and message sizes are unchanged.
#pragma once

#include <optional>
#include <vector>

#include "core/base/units.hpp"
#include "core/cost/cost_model.hpp"
#include "core/graph/task_graph.hpp"
#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

struct WhatIf {
  /// Time per micro-batch on every stage; absent: as priced. An unsplit backward takes
  /// backward_input + backward_weight.
  std::optional<Ticks> forward = {}, backward_input = {}, backward_weight = {};
  /// From the end of a pass to its arrival at the next device; does not occupy the sender.
  std::optional<Ticks> message = {};
  std::optional<Ticks> optimizer = {};  ///< of every rank; zero shows the pipeline alone
  /// By pipeline rank: slowdown factor of its compute tasks, applied after the times above. Empty:
  /// all 1.
  std::vector<double> slowness = {};
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// True if the time of any pass is replaced. This requires a graph whose passes are single tasks
/// (cuts_passes() is false).
bool sets_pass_times(const WhatIf& what_if);

/// Rewrites prices. Slowed ranks get their own copies of works, since stages with the same layers
/// share works; tasks are otherwise unchanged. Slowness must be between 0.001 and 1000, with one
/// entry per pipeline rank or none. O(tasks) if any rank is slowed, else O(works).
void apply(const WhatIf& what_if, TaskGraph& graph, std::vector<WorkPrice>& prices);

/// Pass times per stage of a priced graph, for lower bounds: `latency` is that of the fastest
/// message, and a pass with several prices counts as the shortest, so that the bounds hold. Nothing
/// if passes are split into several tasks, several ranks run each stage, or the output layer is
/// sharded over the stages.
std::optional<StageTimes> stage_times_of(const TaskGraph& graph,
                                         const std::vector<WorkPrice>& prices,
                                         const Schedule& schedule);

}  // namespace meshwright
