/// What if passes took other times than the cost model says? Prices are replaced before a graph is
/// simulated; everything behind them (orders, memory, messages) stays as it is.
#pragma once

#include <optional>
#include <vector>

#include "core/cost_model.hpp"
#include "core/schedule.hpp"
#include "core/stage_times.hpp"
#include "core/task_graph.hpp"
#include "core/units.hpp"

namespace meshwright {

struct WhatIf {
  /// Of one micro-batch on any stage; absent: as priced. A whole backward takes both gradients.
  std::optional<Ticks> forward = {}, backward_input = {}, backward_weight = {};
  /// From the end of a pass to its arrival at the next device; occupies no sender.
  std::optional<Ticks> message = {};
  /// By pipeline position: its compute tasks take that many times as long. Empty: all 1. After the
  /// times above.
  std::vector<double> slowness = {};
  friend bool operator==(const WhatIf&, const WhatIf&) = default;
};

/// True if any pass is to take a time of its own; needs a graph whose passes are not cut
/// (cuts_passes() is false), since a cut pass is several tasks.
bool sets_pass_times(const WhatIf& what_if);

/// Rewrites prices. Ranks that are slowed get works of their own, since works are shared by stages
/// that hold the same part of the model; the tasks stay as they are otherwise. Slowness of at most
/// 1000 and at least 0.001, one entry per pipeline position or none. O(tasks) if any rank is
/// slowed, else O(works).
void apply(const WhatIf& what_if, TaskGraph& graph, std::vector<WorkPrice>& prices);

/// What every stage of a priced graph takes, for bounds: `latency` is the fastest message, and a
/// pass that is priced in two ways counts as the shorter one, so that bounds hold for the graph.
/// Nothing if passes are cut into several tasks, several ranks run each stage, or the output layer
/// is split over the devices.
std::optional<StageTimes> stage_times_of(const TaskGraph& graph,
                                         const std::vector<WorkPrice>& prices,
                                         const Schedule& schedule);

}  // namespace meshwright
