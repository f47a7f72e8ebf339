/// What a slice or a gap is, in words, for the inspector.
#pragma once

#include <QString>

#include "gui/preferences.hpp"
#include "gui/simulation.hpp"
#include "gui/timeline_statistics.hpp"

namespace meshwright::gui {

/// HTML. `causes` may be null. `slice` < 0 or none: empty.
QString slice_html(const Simulation& simulation, const TimelineCauses* causes, qint64 slice,
                   TimeUnit unit);
/// Where the step goes and what limits it: shown while nothing is chosen.
QString overview_html(const Simulation& simulation, TimeUnit unit);
/// The gap in front of a slice: how long, and the chain that it waited for.
QString bubble_html(const Simulation& simulation, const TimelineCauses& causes, qint64 slice_after,
                    TimeUnit unit);
/// Exact figures of a selected area.
QString area_html(const Simulation& simulation, const TimelineCauses* causes,
                  const TimelineArea& area, TimeUnit unit);

}  // namespace meshwright::gui
