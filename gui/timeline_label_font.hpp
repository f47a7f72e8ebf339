/// Short labels painted straight into pixels: a thousand names a frame cost less than a
/// millisecond. Letters are rasterised once. Immutable after construction, so threads share it.
#pragma once

#include <QFont>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gui/timeline_colours.hpp"

namespace meshwright::gui {

/// A rectangle of 32-bit pixels inside an image. Rows are `stride` pixels apart.
struct PixelRows {
  Argb* first = nullptr;
  int width = 0, height = 0, stride = 0;
  Argb* row(int y) const { return first + static_cast<std::ptrdiff_t>(y) * stride; }
};

class LabelFont {
 public:
  /// Needs a QGuiApplication.
  explicit LabelFont(const QFont& font);
  int height() const { return height_; }
  /// Pixels; characters beyond ASCII count as a question mark.
  int width_of(std::string_view text) const;
  /// Left end at `x`, top at `y`; clipped to `pixels`.
  void draw(const PixelRows& pixels, int x, int y, std::string_view text, Argb colour) const;

 private:
  struct Glyph {
    int advance = 0, left = 0, width = 0;
    std::vector<std::uint8_t> alpha;  ///< [height_, width]
  };
  static constexpr int kFirst = 32, kLast = 126;
  const Glyph& glyph(char c) const {
    const bool known = c >= kFirst && c <= kLast;
    return glyphs_[static_cast<std::size_t>((known ? c : '?') - kFirst)];
  }
  std::array<Glyph, kLast - kFirst + 1> glyphs_;
  int height_ = 0;
};

}  // namespace meshwright::gui
