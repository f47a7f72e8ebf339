/// Hill climbing from plan 1. The search enumerates what usually matters; this tries single changes
/// of everything else: shard groups of any size, prefetch distances, rank orders, stages with one
/// block more or less, at the end a synthesized order. If the search was stopped early, also those
/// that it enumerates.
#pragma once

#include "planner/search/search.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// A change is kept if the step is shorter by more than this share; smaller gains do not justify a
/// less common plan. Long synthesized orders have to gain more.
inline constexpr double kWorthwhileGain = 1e-3;

/// Replaces plan 1 by a faster one while a change makes it faster, and lists the changes in the
/// certificate. Keeps fixed choices, and what the trainer can run. Not for plans on selected nodes.
/// The result does not depend on the number of threads.
void refine_best_plan(SearchResult& result, const SearchJob& job, const SearchOptions& options);

}  // namespace meshwright
