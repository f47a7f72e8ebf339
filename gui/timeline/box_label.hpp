/// What is written into a box. Pure: the widths of texts come from the caller's font.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/timeline/layout.hpp"

namespace meshwright::gui {

struct BoxLabel {
  std::string text;  ///< empty: no label
  bool is_small = false;
  friend bool operator==(const BoxLabel&, const BoxLabel&) = default;
};

/// Width of a text in pixels, in the normal or the small font.
using TextWidth = std::function<int(std::string_view text, bool is_small)>;

/// Pixels for the label of a box: a pixel is left free at each side.
constexpr int label_room(double left, double right) { return static_cast<int>(right - left) - 2; }

/// True if "F7" fits into every completely visible box of a pass, so that a row is labeled in one
/// way throughout.
bool kinds_fit(const TimelineTracks& tracks, const std::vector<SliceBox>& boxes, double width,
               const TextWidth& width_of);

/// Passes are labeled "F7", or "7" without `with_kind` (the color shows the kind, as in papers), in
/// a small font where the normal one does not fit. Only kernel names of traces are shortened.
BoxLabel box_label(const TimelineTracks& tracks, std::size_t slice, int room, bool with_kind,
                   const TextWidth& width_of);

}  // namespace meshwright::gui
