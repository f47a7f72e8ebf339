/// Exact figures of a rectangle of the timeline: what the drawer under a selection shows.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/evaluation.hpp"
#include "gui/timeline_causes.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// Rows (ascending, by index) and a span of time.
struct TimelineArea {
  std::vector<std::size_t> rows;
  Nanoseconds from, to;
  friend bool operator==(const TimelineArea&, const TimelineArea&) = default;
};

struct RowStatistics {
  std::size_t row = 0;
  std::size_t slices = 0;  ///< that have a part inside
  BusyTimes busy{};
  Nanoseconds idle;
  friend bool operator==(const RowStatistics&, const RowStatistics&) = default;
};

struct AreaStatistics {
  Nanoseconds span;
  std::vector<RowStatistics> rows;
  std::size_t slices = 0;
  BusyTimes busy{};          ///< over all rows
  Nanoseconds compute_idle;  ///< of compute rows: bubbles and exposed communication
  Nanoseconds compute_span;  ///< compute rows x span
  std::array<Nanoseconds, kIdleCauseCount> idle{};  ///< compute rows, by cause, if causes are known
  friend bool operator==(const AreaStatistics&, const AreaStatistics&) = default;
};

/// O(rows log slices); with causes also the gaps inside.
AreaStatistics area_statistics(const TimelineTracks& tracks, const TimelineArea& area,
                               const TimelineCauses* causes = nullptr);

/// Tab-separated, with a header; times in nanoseconds.
std::string to_tsv(const TimelineTracks& tracks, const AreaStatistics& statistics);
std::string to_markdown(const TimelineTracks& tracks, const AreaStatistics& statistics);
std::string to_json(const TimelineTracks& tracks, const AreaStatistics& statistics);

}  // namespace meshwright::gui
