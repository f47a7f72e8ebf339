/// Schedule synthesis for one plan: orders for its stage times, messages and free memory.
#pragma once

#include <optional>

#include "core/cluster/cluster.hpp"
#include "core/cost/cost_model.hpp"
#include "core/model/model_graph.hpp"
#include "core/plan/plan.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// The plan with the schedule kSynthesizedSchedule and synthesized orders, if it fits in memory and
/// its simulated step is shorter than that of `named`. Otherwise nullopt: one device, an odd number
/// of chunks, too many micro-batches, or a named schedule that is at least as good.
std::optional<RankedPlan> synthesize_orders(const RankedPlan& named, const ModelGraph& model,
                                            const Cluster& cluster, const CostModel& cost_model);

/// For a strategy with the schedule kSynthesizedSchedule: the best published schedule, or
/// synthesized orders if they are better. If no schedule fits in memory, the one with the lowest
/// peak. Throws InputError if no schedule supports the strategy.
Plan best_ordered_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model);

/// Synthesizes orders for the first rows and sorts the rows again. The certificate then no longer
/// holds: it only covers named schedules.
void synthesize_best_rows(SearchResult& result, const ModelGraph& model, const Cluster& cluster,
                          const CostModel& cost_model, int threads);

}  // namespace meshwright
