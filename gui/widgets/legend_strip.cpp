#include "gui/widgets/legend_strip.hpp"

#include <QPainter>
#include <array>

#include "gui/timeline/painter.hpp"
#include "gui/widgets/memory_bars.hpp"

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
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "other kernel"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "matmul"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "attention"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "normalization"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "elementwise"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "host")};
  static_assert(kNames.back() != nullptr);
  return LegendStrip::tr(kNames[static_cast<std::size_t>(kind)]);
}

QString word_of(IdleCause cause) {
  constexpr std::array<const char*, kIdleCauseCount> kNames{
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "warm-up"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "drain"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "dependency"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "communication"),
      QT_TRANSLATE_NOOP("meshwright::gui::LegendStrip", "other idle time")};
  static_assert(kNames.back() != nullptr);
  return LegendStrip::tr(kNames[static_cast<std::size_t>(cause)]);
}

constexpr int kSwatch = 11, kSwatchGap = 5, kBetween = 12, kLegendMargin = 10;

/// The pattern of the timeline, pixel by pixel.
QImage hatched_swatch(IdleCause cause, const TimelineColors& colors) {
  constexpr int kStep = 5;
  QImage image(kSwatch, kSwatch, QImage::Format_RGB32);
  for (int y = 0; y < kSwatch; ++y)
    for (int x = 0; x < kSwatch; ++x)
      image.setPixel(
          x, y, is_hatched(cause, x, y, kStep) ? blended(colors.idle, colors.hatch) : colors.idle);
  return image;
}

}  // namespace

LegendStrip::LegendStrip(QWidget* parent) : QWidget(parent), colors_(light_colors()) {
  setAccessibleName(tr("Legend"));
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

QSize LegendStrip::sizeHint() const { return {200, fontMetrics().height() + 6}; }

int LegendStrip::heightForWidth(int width) const {
  return arrange(width, [](const Item&, const QRect&) {});
}

void LegendStrip::show_content(const LegendContent& content) {
  if (content == content_) return;
  content_ = content;
  QStringList words;
  for (const Item& item : items()) words += item.word;
  setAccessibleDescription(words.join(", "));
  updateGeometry();
  update();
}

void LegendStrip::set_colors(const TimelineColors& colors) {
  colors_ = colors;
  update();
}

std::vector<LegendStrip::Item> LegendStrip::items() const {
  std::vector<Item> items;
  const auto add = [&](const QString& word, Argb with) {
    items.push_back({word, [with](QPainter& painter, const QRect& swatch) {
                       painter.fillRect(swatch, QColor::fromRgba(with));
                     }});
  };
  for (const SliceKind kind : content_.kinds)
    if (!content_.microbatch_colors || !is_pass(kind))
      add(word_of(kind), colors_.slice[static_cast<std::size_t>(kind)]);
  constexpr int kMicrobatchesListed = 8;
  for (int m = 0; content_.microbatch_colors && m < kMicrobatchesListed; ++m)
    add(m == 0 ? tr("micro-batch 0") : QString::number(m), microbatch_color(m));
  if (content_.has_chunks)
    items.push_back({tr("later model chunk"), [this](QPainter& painter, const QRect& swatch) {
                       const Argb kind = colors_.slice[0];
                       painter.fillRect(swatch, QColor::fromRgba(kind));
                       painter.fillRect(swatch.adjusted(0, kSwatch - kChunkStripe, 0, 0),
                                        QColor::fromRgba(text_on(kind)));
                     }});
  for (int c = 0; content_.has_causes && c < kIdleCauseCount; ++c) {
    const auto cause = static_cast<IdleCause>(c);
    items.push_back({c == 0 ? tr("bubble: %1").arg(word_of(cause)) : word_of(cause),
                     [this, cause](QPainter& painter, const QRect& swatch) {
                       painter.drawImage(swatch, hatched_swatch(cause, colors_));
                     }});
  }
  for (int c = 0; content_.has_memory && c < kMemoryClassCount; ++c) {
    const auto memory_class = static_cast<MemoryClass>(c);
    add(c == 0 ? tr("memory: %1").arg(text_of(memory_class)) : text_of(memory_class),
        lane_color(colors_, memory_class));
  }
  return items;
}

int LegendStrip::arrange(int width,
                         const std::function<void(const Item&, const QRect&)>& visit) const {
  const int line = fontMetrics().height() + 4;
  int x = kLegendMargin, y = 1;
  for (const Item& item : items()) {
    const int item_width = kSwatch + kSwatchGap + fontMetrics().horizontalAdvance(item.word);
    if (x > kLegendMargin && x + item_width > width) {
      x = kLegendMargin;
      y += line;
    }
    visit(item, {x, y + (line - kSwatch) / 2, kSwatch, kSwatch});
    x += item_width + kBetween;
  }
  return y + line + 1;
}

void LegendStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const int line = fontMetrics().height() + 4;
  arrange(width(), [&](const Item& item, const QRect& swatch) {
    item.paint(painter, swatch);
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(
        QRect(swatch.right() + 1 + kSwatchGap, swatch.center().y() - line / 2, width(), line),
        Qt::AlignVCenter | Qt::AlignLeft, item.word);
  });
}

}  // namespace meshwright::gui
