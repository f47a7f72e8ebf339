/// One-line descriptions for tooltips, the status bar and screen readers; translated.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Translations of the timeline's parts share the context of the widget.
class TimelineText {
  Q_DECLARE_TR_FUNCTIONS(meshwright::gui::TimelineView)
};

QString describe_slice(const TimelineTracks& tracks, const TimelineCauses* causes,
                       std::size_t slice);
QString describe_bubble(const TimelineTracks& tracks, const TimelineCauses* causes,
                        const Bubble& bubble);
/// What ran on a row in [from, to).
QString describe_mixture(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                         Nanoseconds to);
/// "B7 of stage 3", "message on rank 2 (1 ms)".
QString describe_cause(const TimelineTracks& tracks, std::size_t slice);

}  // namespace meshwright::gui
