/// Orders made for one plan: its stages' own times, its messages, the memory its devices have left.
#pragma once

#include <optional>

#include "core/cluster.hpp"
#include "core/cost_model.hpp"
#include "core/model_graph.hpp"
#include "core/plan.hpp"
#include "planner/search.hpp"

namespace meshwright {

/// The plan with the schedule kMadeToMeasure and orders of its own, where they fit in memory and
/// its simulated step is shorter than that of `named`; nothing otherwise: one device, odd chunks,
/// too many micro-batches to order, or a named schedule that is as good. Simulated like any other.
std::optional<RankedPlan> made_to_measure(const RankedPlan& named, const ModelGraph& model,
                                          const Cluster& cluster, const CostModel& cost_model);

/// The best of the zoo for a split whose schedule is kMadeToMeasure, or orders of its own if they
/// are better. Of schedules that do not fit in memory the leanest. Throws InputError if no schedule
/// takes the split.
Plan best_ordered_plan(const Strategy& strategy, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model);

/// Makes orders for the first rows and sorts again. The certificate then no longer holds: it knew
/// named schedules.
void measure_best_rows(SearchResult& result, const ModelGraph& model, const Cluster& cluster,
                       const CostModel& cost_model, int threads);

}  // namespace meshwright
