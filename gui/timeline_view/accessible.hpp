/// The timeline for screen readers: a table with a row per lane on the screen and a cell per
/// visible slice, with kind, micro-batch, start, duration and what it waited for.
#pragma once

#include <cstddef>

namespace meshwright::gui {

class TimelineView;

/// Registers the accessibility interface of TimelineView with Qt; may be called repeatedly.
void register_timeline_accessibility();

/// Announces a slice that was selected.
void announce_slice(TimelineView& view, std::size_t slice);

}  // namespace meshwright::gui
