/// Draws short labels directly into pixels, because QPainter is too slow for a thousand labels per
/// frame. Glyphs are rasterized once. Immutable after construction, so it can be shared by threads.
#pragma once

#include <QFont>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gui/timeline/colors.hpp"

namespace meshwright::gui {

/// A rectangle of 32-bit pixels inside an image. Rows are `stride` pixels apart.
struct PixelRows {
  Argb* first = nullptr;
  int width = 0, height = 0, stride = 0;
  Argb* row(int y) const { return first + static_cast<std::ptrdiff_t>(y) * stride; }
};

class LabelFont {
 public:
  /// Requires a QGuiApplication.
  explicit LabelFont(const QFont& font);
  int height() const { return height_; }
  /// Width in pixels; non-ASCII characters are drawn as question marks.
  int width_of(std::string_view text) const;
  /// Left end at `x`, top at `y`; clipped to `pixels`.
  void draw(const PixelRows& pixels, int x, int y, std::string_view text, Argb color) const;

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

/// The same font for narrow boxes; requires a size in pixels.
QFont smaller(QFont font);

/// The font of labels, given with its size in pixels, and a smaller one for numbers in narrow
/// boxes.
struct LabelFonts {
  explicit LabelFonts(const QFont& font);
  LabelFont normal, small;
  const LabelFont& of(bool is_small) const { return is_small ? small : normal; }
};

}  // namespace meshwright::gui
