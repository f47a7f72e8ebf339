/// A Timeline without names. Building the names of 100,000 tasks takes several times as long as
/// placing their spans; who draws a step that is simulated at every move of a slider, and has the
/// graph at hand, reads kind, stage and micro-batch instead.
#pragma once

#include <vector>

#include "core/timeline_of.hpp"

namespace meshwright {

/// timeline_of() with `names` left empty: a span's `name` is the index of its task. O(tasks).
Timeline timeline_spans_of(const TaskGraph& graph, const TaskTimes& times,
                           const std::vector<bool>& is_done);

}  // namespace meshwright
