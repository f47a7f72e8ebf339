#include "gui/widgets/memory_bars.hpp"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <array>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/widgets/chart_axis.hpp"

namespace meshwright::gui {

namespace {

struct MemoryEntry {
  const char* color;
  Qt::BrushStyle pattern;
  const char* text;
};

/// In the order of MemoryClass.
constexpr std::array<MemoryEntry, kMemoryClassCount> kMemoryEntries{{
    {"#0072b2", Qt::SolidPattern, QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "weights")},
    {"#56b4e9", Qt::SolidPattern, QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "gradients")},
    {"#009e73", Qt::SolidPattern,
     QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "optimizer state")},
    {"#e69f00", Qt::SolidPattern,
     QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "saved activations")},
    {"#f0e442", Qt::Dense3Pattern, QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "working set")},
    {"#d55e00", Qt::SolidPattern, QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "logits")},
    {"#cc79a7", Qt::SolidPattern,
     QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "communication")},
    {"#999999", Qt::BDiagPattern, QT_TRANSLATE_NOOP("meshwright::gui::MemoryBars", "reserved")},
}};
static_assert(kMemoryEntries.back().text != nullptr);

const MemoryEntry& entry_of(MemoryClass memory_class) {
  return kMemoryEntries[static_cast<std::size_t>(memory_class)];
}

}  // namespace

MemoryLook look_of(MemoryClass memory_class) {
  const MemoryEntry& entry = entry_of(memory_class);
  return {entry.color, entry.pattern};
}

QString text_of(MemoryClass memory_class) { return MemoryBars::tr(entry_of(memory_class).text); }

MemoryBars::MemoryBars(QWidget* parent) : Chart(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Memory per pipeline rank"));
}

void MemoryBars::show_amounts(std::vector<MemoryAmounts> amounts, Bytes capacity) {
  amounts_ = std::move(amounts);
  capacity_ = capacity;
  chosen_ = std::clamp(chosen_, 0, std::max(0, static_cast<int>(amounts_.size()) - 1));
  update();
}

double MemoryBars::full_scale() const {
  constexpr double kHeadRoom = 1.08;
  std::int64_t most = capacity_.value;
  for (const MemoryAmounts& one : amounts_) most = std::max(most, total(one).value);
  return std::max(1.0, static_cast<double>(most) * kHeadRoom);
}

QRectF MemoryBars::bar_of(int pipeline_rank) const {
  const QRectF all = plot_rect();
  const double width = all.width() / static_cast<double>(std::max<std::size_t>(1, amounts_.size()));
  const double gap = std::min(6.0, width / 6);
  const double height =
      all.height() *
      static_cast<double>(total(amounts_[static_cast<std::size_t>(pipeline_rank)]).value) /
      full_scale();
  return {all.left() + pipeline_rank * width + gap, all.bottom() - height, width - 2 * gap, height};
}

void MemoryBars::paint_bar(QPainter& painter, int pipeline_rank) const {
  const ChartColors colors = chart_colors(palette());
  const QRectF bar = bar_of(pipeline_rank);
  double bottom = bar.bottom();
  for (int c = 0; c < kMemoryClassCount; ++c) {
    const auto memory_class = static_cast<MemoryClass>(c);
    const double height =
        plot_rect().height() *
        static_cast<double>(amounts_[static_cast<std::size_t>(pipeline_rank)][memory_class].value) /
        full_scale();
    const QRectF part(bar.left(), bottom - height, bar.width(), height);
    const MemoryLook look = look_of(memory_class);
    painter.fillRect(part, look.pattern == Qt::SolidPattern ? look.color : colors.background);
    if (look.pattern != Qt::SolidPattern) painter.fillRect(part, QBrush(look.color, look.pattern));
    bottom -= height;
  }
  if (pipeline_rank == chosen_) {
    painter.setPen(QPen(colors.accent, hasFocus() ? 3 : 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(bar.adjusted(-2, -2, 2, 2));
  }
}

void MemoryBars::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  if (amounts_.empty()) return;
  ChartAxis x, y;
  x.low = -0.5;
  x.high = static_cast<double>(amounts_.size()) - 0.5;
  x.title = tr("pipeline rank");
  x.is_whole = true;
  x.text = [](double rank) { return QString::number(std::lround(rank)); };
  y.high = full_scale();
  y.is_binary = true;
  y.text = bytes_label;
  const QRectF plot = plot_rect();
  paint_axes(painter, plot, x, y, colors);
  for (int i = 0; i < static_cast<int>(amounts_.size()); ++i) paint_bar(painter, i);
  if (capacity_.value == 0) return;
  const double at =
      plot.bottom() - plot.height() * static_cast<double>(capacity_.value) / full_scale();
  painter.setPen(QPen(colors.bad, 2, Qt::DashLine));
  painter.drawLine(QPointF(plot.left(), at), QPointF(plot.right(), at));
  painter.drawText(QRectF(plot.right() - 240, at - painter.fontMetrics().height() - 2, 238, 20),
                   Qt::AlignRight, tr("capacity %1").arg(bytes_text(capacity_)));
}

int MemoryBars::pipeline_rank_at(const QPointF& point) const {
  for (int i = 0; i < static_cast<int>(amounts_.size()); ++i) {
    const QRectF bar = bar_of(i);
    if (point.x() >= bar.left() - 3 && point.x() <= bar.right() + 3) return i;
  }
  return -1;
}

void MemoryBars::choose(int pipeline_rank) {
  if (pipeline_rank < 0 || pipeline_rank >= static_cast<int>(amounts_.size()) ||
      pipeline_rank == chosen_)
    return;
  chosen_ = pipeline_rank;
  update();
  Q_EMIT pipeline_rank_chosen(pipeline_rank);
}

void MemoryBars::mousePressEvent(QMouseEvent* event) {
  choose(pipeline_rank_at(event->position()));
}

void MemoryBars::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Left) return choose(chosen_ - 1);
  if (event->key() == Qt::Key_Right) return choose(chosen_ + 1);
  QWidget::keyPressEvent(event);
}

QString MemoryBars::tip_at(const QPointF& point) const {
  const int pipeline_rank = pipeline_rank_at(point);
  if (pipeline_rank < 0) return {};
  const MemoryAmounts& amounts = amounts_[static_cast<std::size_t>(pipeline_rank)];
  QStringList lines{tr("pipeline rank %1: %2").arg(pipeline_rank).arg(bytes_text(total(amounts)))};
  for (int c = kMemoryClassCount; c-- > 0;) {
    const Bytes bytes = amounts.by_class[static_cast<std::size_t>(c)];
    if (bytes > Bytes())
      lines += QString("%1  %2").arg(bytes_text(bytes), text_of(static_cast<MemoryClass>(c)));
  }
  return lines.join("\n");
}

}  // namespace meshwright::gui
