#include "gui/widgets/legend_strip.hpp"

#include <QPainter>
#include <array>

namespace meshwright::gui {
namespace {

QString word_of(SliceKind kind) {
  constexpr std::array<const char*, kSliceKindCount> kNames{
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "F forward"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "B backward"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "I input gradient"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "W weight gradient"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "optimizer"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "collective"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "send"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "receive"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "recomputation"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "copy"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "kernel"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "host")};
  static_assert(kNames.back() != nullptr);
  return LegendStrip::tr(kNames[static_cast<std::size_t>(kind)]);
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
