#include "gui/widgets/legend_strip.hpp"

#include <QPainter>

namespace meshwright::gui {
namespace {

QString word_of(SliceKind kind) {
  switch (kind) {
    case SliceKind::kForward:
      return LegendStrip::tr("F forward");
    case SliceKind::kBackward:
      return LegendStrip::tr("B backward");
    case SliceKind::kBackwardInput:
      return LegendStrip::tr("I input gradient");
    case SliceKind::kBackwardWeight:
      return LegendStrip::tr("W weight gradient");
    case SliceKind::kOptimizer:
      return LegendStrip::tr("optimizer");
    case SliceKind::kCollective:
      return LegendStrip::tr("collective");
    case SliceKind::kSend:
      return LegendStrip::tr("send");
    case SliceKind::kReceive:
      return LegendStrip::tr("receive");
    case SliceKind::kRecompute:
      return LegendStrip::tr("recomputation");
    case SliceKind::kCopy:
      return LegendStrip::tr("copy");
    case SliceKind::kKernel:
      return LegendStrip::tr("kernel");
    case SliceKind::kHost:
      return LegendStrip::tr("host");
  }
  return {};
}

constexpr int kSwatch = 11, kSwatchGap = 5, kBetween = 12, kLegendMargin = 10;

}  // namespace

LegendStrip::LegendStrip(QWidget* parent) : QWidget(parent), colors_(light_colors()) {
  setAccessibleName(tr("Legend"));
}

QSize LegendStrip::sizeHint() const { return {200, fontMetrics().height() + 6}; }

void LegendStrip::show_kinds(std::vector<SliceKind> kinds) {
  if (kinds == kinds_) return;
  kinds_ = std::move(kinds);
  QStringList words;
  for (const SliceKind kind : kinds_) words += word_of(kind);
  setAccessibleDescription(words.join(", "));
  update();
}

void LegendStrip::set_colors(const TimelineColors& colors) {
  colors_ = colors;
  update();
}

void LegendStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  int x = kLegendMargin;
  const auto item = [&](const QBrush& brush, const QString& word) {
    const QRect swatch(x, (height() - kSwatch) / 2, kSwatch, kSwatch);
    painter.fillRect(swatch, QColor::fromRgba(colors_.idle));
    painter.fillRect(swatch, brush);
    x += kSwatch + kSwatchGap;
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(QRect(x, 0, width() - x, height()), Qt::AlignVCenter | Qt::AlignLeft, word);
    x += fontMetrics().horizontalAdvance(word) + kBetween;
  };
  for (const SliceKind kind : kinds_)
    item(QColor::fromRgba(colors_.slice[static_cast<std::size_t>(kind)]), word_of(kind));
  item(QBrush(QColor::fromRgba(colors_.hatch), Qt::BDiagPattern), tr("bubble (hatched by cause)"));
}

}  // namespace meshwright::gui
