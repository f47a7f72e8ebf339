/// Interpolation between a predicted and a measured timeline, for the slider of the Compare screen.
#pragma once

#include "gui/timeline/comparison.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// The predicted slices moved by a fraction `share` toward their measured positions: 0 is the
/// prediction, 1 the measurement. Unpaired slices keep their duration and are pushed back if
/// needed. Indices of slices, rows and labels do not change, so pairs, selections and causes stay
/// valid. A slice never overtakes its predecessor on the row, even if it did so in the measurement.
/// Memory and arrows stay as predicted. O(slices), including the coverage.
TimelineTracks morphed(const TimelineTracks& predicted, const TimelineTracks& measured,
                       const TimelineComparison& pairs, double share);

}  // namespace meshwright::gui
