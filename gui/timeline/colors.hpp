/// Timeline colors, 0xAARRGGBB, based on Okabe–Ito (Okabe & Ito, "Color Universal Design", 2008):
/// colorblind-safe, and never the only carrier of meaning.
#pragma once

#include <array>
#include <cstdint>

#include "core/base/memory_amounts.hpp"
#include "gui/timeline/kinds.hpp"

namespace meshwright::gui {

using Argb = std::uint32_t;

enum class SlicePalette : std::uint8_t { kOkabeIto, kPyTorch, kMegatronPaper, kZeroBubblePaper };
inline constexpr int kSlicePaletteCount = 4;

struct TimelineColors {
  std::array<Argb, kSliceKindCount> slice{};
  std::array<Argb, kMemoryClassCount> memory{};
  Argb background = 0, row_stripe = 0, idle = 0;  ///< idle: background of compute rows
  Argb text = 0, faint_text = 0, grid = 0, header = 0;
  Argb hover = 0, selection = 0, area = 0, cursor_a = 0, cursor_b = 0;
  Argb critical = 0, dim = 0;  ///< dim: overlay on everything off the critical path
  Argb arrow = 0, ghost = 0, hatch = 0;
  Argb faster = 0, slower = 0;  ///< difference lane
  friend bool operator==(const TimelineColors&, const TimelineColors&) = default;
};

TimelineColors light_colors(SlicePalette palette = SlicePalette::kOkabeIto);
TimelineColors dark_colors(SlicePalette palette = SlicePalette::kOkabeIto);
TimelineColors high_contrast_colors();

/// Color of any micro-batch number, distinct from its neighbors.
Argb microbatch_color(int microbatch);
/// `over` alpha-blended onto `under`; the result is opaque.
Argb blended(Argb under, Argb over);

/// Contrast ratio of two opaque colors, 1 to 21 (WCAG 2.1).
double contrast(Argb a, Argb b);
/// Black or white, whichever has more contrast on `fill`.
Argb text_on(Argb fill);

}  // namespace meshwright::gui
