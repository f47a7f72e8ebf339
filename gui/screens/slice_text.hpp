/// Descriptions of slices and bubbles for the inspector.
#pragma once

#include <QString>

#include "gui/session/preferences.hpp"
#include "gui/session/simulation.hpp"
#include "gui/timeline/statistics.hpp"

namespace meshwright::gui {

/// Returns HTML; empty if there is no such slice. `causes` may be null.
QString slice_html(const TimelineTracks& tracks, const TimelineCauses* causes, qint64 slice,
                   TimeUnit unit);
/// Breakdown of the step time, shown if nothing is selected.
QString overview_html(const Simulation& simulation, TimeUnit unit);
/// The bubble before a slice: its duration and the chain of tasks it waits for.
QString bubble_html(const TimelineTracks& tracks, const TimelineCauses& causes, qint64 slice_after,
                    TimeUnit unit);
/// Exact statistics of a selected area.
QString area_html(const TimelineTracks& tracks, const TimelineCauses* causes,
                  const TimelineArea& area, TimeUnit unit);

}  // namespace meshwright::gui
