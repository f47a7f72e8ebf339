/// Per-layer strategies (plan --per-layer): how every block is recomputed and, under ZeRO 3,
/// whether its parameters are resharded after the forward pass. Not where two stages hold a part of
/// the model, and not on heterogeneous clusters.
#pragma once

#include <functional>
#include <optional>

#include "planner/search/search.hpp"
#include "planner/search/search_job.hpp"

namespace meshwright {

/// The plan with the layer options that make its step shortest; fixed choices are kept. Memory is
/// divided among the blocks of every pipeline rank by fast_choices(), then corrected by simulation.
/// nullopt: none of them is faster than the plan by kWorthwhileGain. `canceled` ends it early.
std::optional<RankedPlan> with_layer_options(const RankedPlan& plan, const SearchJob& job,
                                             const std::function<bool()>& canceled = {});

/// Rows to choose from, also if fewer are wanted: with options of its own, another one than the
/// first may be the fastest.
inline constexpr int kRowsForLayerOptions = 4;

/// Does so for every row, sorts them again, and notes the step time without layer options in the
/// certificate. The result does not depend on the number of threads.
void choose_layer_options(SearchResult& result, const SearchJob& job, const SearchOptions& options);

}  // namespace meshwright
