/// Exact statistics of a selected area of the timeline.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/timeline/evaluation.hpp"
#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Row indices (ascending) and a time range.
struct TimelineArea {
  std::vector<std::size_t> rows;
  Nanoseconds from, to;
  friend bool operator==(const TimelineArea&, const TimelineArea&) = default;
};

struct RowStatistics {
  std::size_t row = 0;
  std::size_t slices = 0;  ///< slices that overlap the area
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
  std::array<Nanoseconds, kIdleCauseCount> idle{};  ///< of compute rows, by cause if known
  friend bool operator==(const AreaStatistics&, const AreaStatistics&) = default;
};

/// O(rows log slices), plus the gaps in the area if causes are given.
AreaStatistics area_statistics(const TimelineTracks& tracks, const TimelineArea& area,
                               const TimelineCauses* causes = nullptr);

/// Tab-separated values with a header; times in nanoseconds.
std::string to_tsv(const TimelineTracks& tracks, const AreaStatistics& statistics);
std::string to_markdown(const TimelineTracks& tracks, const AreaStatistics& statistics);
std::string to_json(const TimelineTracks& tracks, const AreaStatistics& statistics);

}  // namespace meshwright::gui
