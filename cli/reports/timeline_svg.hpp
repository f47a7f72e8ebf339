/// The compute streams of a timeline as SVG, for pages and notebooks.
#pragma once

#include <string>

#include "core/timeline/timeline.hpp"

namespace meshwright {

/// One row per rank with a box per task: width 100 %, with a title for each box, so that it can be
/// read without a script. At most kMostSvgRows ranks, which a line of text says; boxes that would
/// be too many are merged with their neighbors. Times are percentages of the width: a page zooms by
/// making the element wider.
std::string timeline_svg(const Timeline& timeline);

inline constexpr int kMostSvgRows = 32;
inline constexpr int kSvgWidth = 1200;  ///< pixels before zooming

}  // namespace meshwright
