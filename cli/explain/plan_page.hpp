/// A plan as one self-contained HTML page.
#pragma once

#include <string>

#include "cli/explain/explanation.hpp"
#include "cli/job/job.hpp"
#include "core/timeline/timeline.hpp"

namespace meshwright {

/// Figures, timeline, memory, breakdown, single changes and sources. The page has no links to other
/// files; the timeline can be read without its script, which zooms and shows the clicked task.
std::string plan_page(const Job& job, const Explanation& explanation, const Timeline& timeline);

}  // namespace meshwright
