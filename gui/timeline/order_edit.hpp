/// Reordering of passes by dragging a slice within its row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Moves the `from`-th pass of a row to position `to`; the passes in between shift by one.
struct OrderEdit {
  std::size_t row = 0;
  std::int32_t rank = -1;  ///< RankId value of the row
  std::int32_t from = 0, to = 0;
  std::size_t slice = 0;  ///< the dragged slice
  friend bool operator==(const OrderEdit&, const OrderEdit&) = default;
};

/// The edit for a pass dropped with its middle at `time`; positions count passes only. Returns
/// nullopt if the slice is not a pass or would not move.
std::optional<OrderEdit> order_edit_at(const TimelineTracks& tracks, std::size_t slice,
                                       Nanoseconds time);

/// The pass slices of the row in the order after the edit.
std::vector<std::size_t> order_after(const TimelineTracks& tracks, const OrderEdit& edit);

}  // namespace meshwright::gui
