/// What a view of a timeline shows: one timeline, or a prediction and its measured run with their
/// pairs. The shared data is immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gui/timeline/causes.hpp"
#include "gui/timeline/comparison.hpp"
#include "gui/timeline/counters.hpp"
#include "gui/timeline/layout.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

struct TimelineContent {
  std::shared_ptr<const TimelineTracks> tracks;    ///< null: nothing is shown
  std::shared_ptr<const TimelineTracks> measured;  ///< null: no comparison
  std::shared_ptr<const TimelineTracks> ghost;     ///< drawn as outlines; may be null
  std::shared_ptr<const TimelineCauses> causes;    ///< of `tracks`; null if unknown
  std::shared_ptr<const TimelineComparison> comparison;
  std::shared_ptr<InFlightCurves> in_flight;  ///< of `tracks`

  bool is_comparison() const { return measured != nullptr; }
  const TimelineTracks& tracks_of(const Lane& lane) const {
    return lane.is_measured ? *measured : *tracks;
  }
  const TimelineRow& row_of(const Lane& lane) const {
    return tracks_of(lane).rows[static_cast<std::size_t>(lane.row)];
  }
  /// Added to the times of the lane's tracks to align them.
  Nanoseconds offset_of(const Lane& lane) const;
  /// The end of the later timeline after alignment; needs tracks.
  Nanoseconds end() const;

  /// The other slice of a pair, if there is one. measured_of() is linear in the slices of a row,
  /// predicted_of() logarithmic.
  std::optional<std::size_t> measured_of(std::size_t predicted) const;
  std::optional<std::size_t> predicted_of(std::size_t of_measured) const;

  /// The same data, not equal data.
  friend bool operator==(const TimelineContent&, const TimelineContent&) = default;
};

}  // namespace meshwright::gui
