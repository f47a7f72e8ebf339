/// Dragging a slice to another place in the order of its row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// Move the `from`-th slice of the row's passes to be its `to`-th; others close up.
struct OrderEdit {
  std::size_t row = 0;
  std::int32_t rank = -1;  ///< RankId value of the row
  std::int32_t from = 0, to = 0;
  std::size_t slice = 0;  ///< the one that is dragged
  friend bool operator==(const OrderEdit&, const OrderEdit&) = default;
};

/// Where a pass dropped with its middle at `time` goes, in the order of the row's passes (forward
/// and backward; other slices do not count). Nothing if the slice is no pass or would stay.
std::optional<OrderEdit> order_edit_at(const TimelineTracks& tracks, std::size_t slice,
                                       Nanoseconds time);

/// Slices of the row's passes in the order after the edit.
std::vector<std::size_t> order_after(const TimelineTracks& tracks, const OrderEdit& edit);

}  // namespace meshwright::gui
