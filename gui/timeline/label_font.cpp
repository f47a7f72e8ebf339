#include "gui/timeline/label_font.hpp"

#include <QFontMetrics>
#include <QImage>
#include <QPainter>
#include <algorithm>
#include <cmath>

namespace meshwright::gui {

LabelFont::LabelFont(const QFont& font) {
  const QFontMetrics metrics(font);
  height_ = metrics.height();
  for (int c = kFirst; c <= kLast; ++c) {
    Glyph& glyph = glyphs_[static_cast<std::size_t>(c - kFirst)];
    const QChar letter(static_cast<char16_t>(c));
    const QRect box = metrics.boundingRect(letter);
    glyph.advance = metrics.horizontalAdvance(letter);
    glyph.left = box.left() - 1;
    glyph.width = box.width() + 2;
    QImage image(glyph.width, height_, QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    QPainter painter(&image);
    painter.setFont(font);
    painter.setPen(Qt::white);
    painter.drawText(-glyph.left, metrics.ascent(), letter);
    painter.end();
    glyph.alpha.reserve(static_cast<std::size_t>(glyph.width) * static_cast<std::size_t>(height_));
    for (int y = 0; y < height_; ++y) {
      const auto* row = reinterpret_cast<const QRgb*>(image.constScanLine(y));
      for (int x = 0; x < glyph.width; ++x)
        glyph.alpha.push_back(static_cast<std::uint8_t>(qAlpha(row[x])));
    }
  }
}

int LabelFont::width_of(std::string_view text) const {
  int width = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) width += glyph(c).advance;
  return width;
}

void LabelFont::draw(const PixelRows& pixels, int x, int y, std::string_view text,
                     Argb color) const {
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) == 0x80) continue;  // inside a UTF-8 character
    const Glyph& g = glyph(c);
    const int left = std::max(0, x + g.left), right = std::min(pixels.width, x + g.left + g.width);
    const int top = std::max(0, y), bottom = std::min(pixels.height, y + height_);
    for (int py = top; py < bottom; ++py) {
      Argb* row = pixels.row(py);
      const std::uint8_t* alpha = g.alpha.data() + std::ptrdiff_t{py - y} * g.width;
      for (int px = left; px < right; ++px)
        if (const std::uint32_t a = alpha[px - x - g.left]; a != 0)
          row[px] = blended(row[px], (color & 0xffffffU) | a << 24);
    }
    x += g.advance;
  }
}

QFont smaller(QFont font) {
  constexpr double kSmaller = 0.75;
  font.setPixelSize(std::max(1, static_cast<int>(std::lround(font.pixelSize() * kSmaller))));
  return font;
}

LabelFonts::LabelFonts(const QFont& font) : normal(font), small(smaller(font)) {}

}  // namespace meshwright::gui
