#include "gui/timeline/colors.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright::gui {
namespace {

constexpr Argb opaque(std::uint32_t rgb) { return 0xff000000U | rgb; }
constexpr Argb with_alpha(std::uint32_t rgb, std::uint32_t alpha) { return alpha << 24 | rgb; }

using SliceColors = std::array<Argb, kSliceKindCount>;

/// In the order of SliceKind: F, B, I, W, optimizer,
/// collective, send, receive, recompute, copy, kernel, matmul, attention, normalization,
/// elementwise, host.
SliceColors slice_colors(SlicePalette palette) {
  SliceColors colors{opaque(0x0072b2), opaque(0xe69f00), opaque(0x56b4e9), opaque(0x009e73),
                     opaque(0xf0e442), opaque(0xd55e00), opaque(0xcc79a7), opaque(0xb05a8a),
                     opaque(0x999999), opaque(0xbcbd22), opaque(0x4a7fb5), opaque(0x0072b2),
                     opaque(0xe69f00), opaque(0x009e73), opaque(0x56b4e9), opaque(0xa0a0a0)};
  switch (palette) {
    case SlicePalette::kOkabeIto:
      break;
    case SlicePalette::kPyTorch:  // as torch.distributed.pipelining's schedule visualizer
      colors[0] = opaque(0x1f77b4), colors[1] = opaque(0xff7f0e), colors[2] = opaque(0x17becf),
      colors[3] = opaque(0x2ca02c);
      break;
    case SlicePalette::kMegatronPaper:  // forward blue, backward green (arXiv 2104.04473, figure 4)
      colors[0] = opaque(0x3d6fc4), colors[1] = opaque(0x6fbf73), colors[2] = opaque(0x6fbf73),
      colors[3] = opaque(0x2f7d4f);
      break;
    case SlicePalette::kZeroBubblePaper:  // F blue, B turquoise, W green (arXiv 2401.10241)
      colors[0] = opaque(0x4c78d8), colors[1] = opaque(0x39b6b0), colors[2] = opaque(0x39c5c0),
      colors[3] = opaque(0x3c9a4a);
      break;
  }
  return colors;
}

/// The colors of the Memory screen, in MemoryClass order: weights, gradients, optimizer,
/// activations, working, logits, communication, reserved.
constexpr std::array<Argb, kMemoryClassCount> kMemoryColors{
    opaque(0x0072b2), opaque(0x56b4e9), opaque(0x009e73), opaque(0xe69f00),
    opaque(0xf0e442), opaque(0xd55e00), opaque(0xcc79a7), opaque(0x8a8f98)};

struct ThemeColor {
  Argb TimelineColors::*field;
  Argb light, dark;
};

constexpr ThemeColor kThemeColors[]{
    {&TimelineColors::background, opaque(0xffffff), opaque(0x16181c)},
    {&TimelineColors::row_stripe, opaque(0xf6f7f9), opaque(0x1b1e23)},
    {&TimelineColors::idle, opaque(0xe6e8ec), opaque(0x292d34)},
    {&TimelineColors::text, opaque(0x1c2024), opaque(0xe8eaed)},
    {&TimelineColors::faint_text, opaque(0x5c646e), opaque(0x9aa3ad)},
    {&TimelineColors::grid, opaque(0xd9dce1), opaque(0x343941)},
    {&TimelineColors::header, opaque(0xf1f3f5), opaque(0x1f2329)},
    {&TimelineColors::hover, with_alpha(0x000000, 0xc0), with_alpha(0xffffff, 0xd0)},
    {&TimelineColors::selection, opaque(0x101010), opaque(0xffffff)},
    {&TimelineColors::area, with_alpha(0x2f6fde, 0x2c), with_alpha(0x6aa1ff, 0x38)},
    {&TimelineColors::cursor_a, opaque(0x0b7a3b), opaque(0x5fd38d)},
    {&TimelineColors::cursor_b, opaque(0xb3261e), opaque(0xff8a80)},
    {&TimelineColors::critical, opaque(0xc2185b), opaque(0xff6ea9)},
    {&TimelineColors::dim, with_alpha(0xffffff, 0xa6), with_alpha(0x16181c, 0xb0)},
    {&TimelineColors::arrow, opaque(0x30343a), opaque(0xe0e3e7)},
    {&TimelineColors::ghost, opaque(0x6a4fb3), opaque(0xb39ddb)},
    {&TimelineColors::hatch, with_alpha(0x50565f, 0x80), with_alpha(0x9aa3ad, 0x70)},
    {&TimelineColors::faster, opaque(0x2e7d32), opaque(0x66bb6a)},
    {&TimelineColors::slower, opaque(0xc62828), opaque(0xef5350)},
};

TimelineColors theme_colors(SlicePalette palette, Argb ThemeColor::*theme) {
  TimelineColors colors{.slice = slice_colors(palette), .memory = kMemoryColors};
  for (const ThemeColor& color : kThemeColors) colors.*color.field = color.*theme;
  return colors;
}

}  // namespace

TimelineColors light_colors(SlicePalette palette) {
  return theme_colors(palette, &ThemeColor::light);
}

TimelineColors dark_colors(SlicePalette palette) {
  return theme_colors(palette, &ThemeColor::dark);
}

TimelineColors high_contrast_colors() {
  TimelineColors colors = dark_colors();
  colors.background = colors.row_stripe = colors.header = opaque(0x000000);
  colors.idle = opaque(0x101010);
  colors.text = colors.faint_text = colors.arrow = opaque(0xffffff);
  colors.grid = opaque(0x808080);
  colors.selection = opaque(0xffff00);
  colors.hatch = opaque(0xc0c0c0);
  return colors;
}

Argb microbatch_color(int microbatch) {
  // Neighbors are a golden angle apart in hue, with six steps of lightness.
  const double hue = std::fmod(static_cast<double>(microbatch) * 0.61803398875, 1.0) * 6;
  const double light = 0.45 + 0.05 * (microbatch % 6);
  const double chroma = 0.62 * (1 - std::abs(2 * light - 1));
  const double x = chroma * (1 - std::abs(std::fmod(hue, 2.0) - 1)), m = light - chroma / 2;
  const auto sector = static_cast<int>(hue);
  const std::array<std::array<double, 3>, 6> rgb{{{chroma, x, 0},
                                                  {x, chroma, 0},
                                                  {0, chroma, x},
                                                  {0, x, chroma},
                                                  {x, 0, chroma},
                                                  {chroma, 0, x}}};
  std::uint32_t packed = 0;
  for (const double c : rgb[static_cast<std::size_t>(sector)])
    packed = packed << 8 | static_cast<std::uint32_t>(std::lround((c + m) * 255));
  return opaque(packed);
}

Argb blended(Argb under, Argb over) {
  const std::uint32_t alpha = over >> 24;
  Argb result = 0xff000000U;
  for (const int shift : {0, 8, 16}) {
    const std::uint32_t u = under >> shift & 255, o = over >> shift & 255;
    result |= ((o * alpha + u * (255 - alpha) + 127) / 255) << shift;
  }
  return result;
}

namespace {

/// Relative luminance of an opaque sRGB color (WCAG 2.1).
double relative_luminance(Argb color) {
  const auto linear = [](std::uint32_t channel) {
    const double c = static_cast<double>(channel & 255) / 255;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color >> 16) + 0.7152 * linear(color >> 8) + 0.0722 * linear(color);
}

}  // namespace

double contrast(Argb a, Argb b) {
  const double la = relative_luminance(a), lb = relative_luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

Argb text_on(Argb fill) {
  constexpr Argb kBlack = opaque(0x000000), kWhite = opaque(0xffffff);
  return contrast(fill, kBlack) >= contrast(fill, kWhite) ? kBlack : kWhite;
}

}  // namespace meshwright::gui
