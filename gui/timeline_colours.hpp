/// Colours of a timeline, 0xAARRGGBB. Okabe–Ito base (Okabe & Ito, "Color Universal Design", 2008):
/// told apart with every kind of colour blindness, and never the only carrier of a meaning.
#pragma once

#include <array>
#include <cstdint>

#include "core/memory_amounts.hpp"
#include "gui/timeline_kinds.hpp"

namespace meshwright::gui {

using Argb = std::uint32_t;

enum class SlicePalette : std::uint8_t { kOkabeIto, kPyTorch, kMegatronPaper, kZeroBubblePaper };
inline constexpr int kSlicePaletteCount = 4;

struct TimelineColours {
  std::array<Argb, kSliceKindCount> slice{};
  std::array<Argb, kMemoryClassCount> memory{};
  Argb background = 0, row_stripe = 0, idle = 0;  ///< idle: under a compute row
  Argb text = 0, faint_text = 0, grid = 0, header = 0;
  Argb hover = 0, selection = 0, area = 0, cursor_a = 0, cursor_b = 0;
  Argb critical = 0, dim = 0;  ///< dim: laid over what is not on the critical path
  Argb arrow = 0, ghost = 0, hatch = 0;
  Argb faster = 0, slower = 0;  ///< difference lane
  friend bool operator==(const TimelineColours&, const TimelineColours&) = default;
};

TimelineColours light_colours(SlicePalette palette = SlicePalette::kOkabeIto);
TimelineColours dark_colours(SlicePalette palette = SlicePalette::kOkabeIto);
TimelineColours high_contrast_colours();

/// Hues of micro-batches, told apart from their neighbours; any number of them.
Argb microbatch_colour(int microbatch);
/// `over` laid over `under` with its alpha; opaque.
Argb blended(Argb under, Argb over);

/// Relative contrast of two opaque colours, 1 to 21 (WCAG 2.1, definition of contrast ratio).
double contrast(Argb a, Argb b);
/// Black or white, whichever is read better on `fill`.
Argb text_on(Argb fill);

}  // namespace meshwright::gui
