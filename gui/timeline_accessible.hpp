/// The timeline for screen readers: a table whose rows are the lanes on the screen and whose cells
/// are their visible slices, each with kind, micro-batch, start, duration and what it waited for.
#pragma once

namespace meshwright::gui {

/// Tells Qt how to describe a TimelineView; may be called any number of times.
void register_timeline_accessibility();

}  // namespace meshwright::gui
