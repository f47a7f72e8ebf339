/// Between predicted and measured: what the slider of a comparison moves through.
#pragma once

#include "gui/timeline_comparison.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// The predicted slices, `share` of the way to where they were measured: 0 is the prediction, 1 the
/// measurement, as far as slices are paired. Those without a partner keep their length and give
/// way. Slices, rows and labels keep their places in the columns, so that pairs, selections and
/// causes stay true; a slice never passes the one before it on its row, though it may have done so
/// when it was measured. Memory and arrows stay as predicted. O(slices), coverage included.
TimelineTracks morphed(const TimelineTracks& predicted, const TimelineTracks& measured,
                       const TimelineComparison& pairs, double share);

}  // namespace meshwright::gui
