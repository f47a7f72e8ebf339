#include "gui/widgets/memory_curve.hpp"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>

#include "gui/text/number_text.hpp"
#include "gui/widgets/chart_axis.hpp"
#include "gui/widgets/memory_bars.hpp"

namespace meshwright::gui {
namespace {

QString time_of(double nanoseconds) {
  return time_text(Ticks(static_cast<std::int64_t>(nanoseconds) * 1000));
}

}  // namespace

MemoryCurve::MemoryCurve(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Memory over time"));
  setToolTip(tr("Click to show this time in the timeline"));
}

void MemoryCurve::show_curve(MemoryCurveOfRank curve, Nanoseconds end) {
  curve_ = std::move(curve);
  end_ = end;
  update();
}

std::size_t MemoryCurve::peak() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < curve_.points.size(); ++i)
    if (total(curve_.points[i].amounts) > total(curve_.points[best].amounts)) best = i;
  return best;
}

void MemoryCurve::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  if (curve_.points.empty() || end_.value <= 0) return;
  const std::size_t at_peak = peak();
  const auto most =
      static_cast<double>(std::max(total(curve_.points[at_peak].amounts), curve_.capacity).value);
  ChartAxis x, y;
  x.high = static_cast<double>(end_.value);
  x.text = time_of;
  x.title = tr("time on rank %1").arg(curve_.rank);
  y.high = most * 1.08;
  y.is_binary = true;
  y.text = bytes_label;
  const QRectF plot = plot_rect();
  paint_axes(painter, plot, x, y, colors);
  // Top-down: each class is painted with everything below it, so its own band stays visible.
  for (int c = kMemoryClassCount; c-- > 0;) {
    QPainterPath path(plot.bottomLeft());
    double before = plot.bottom();
    for (const MemoryPoint& point : curve_.points) {
      std::int64_t sum = 0;
      for (int below = 0; below <= c; ++below)
        sum += point.amounts.by_class[static_cast<std::size_t>(below)].value;
      const QPointF corner =
          point_of(plot, x, y, static_cast<double>(point.time.value), static_cast<double>(sum));
      path.lineTo(corner.x(), before);
      path.lineTo(corner);
      before = corner.y();
    }
    path.lineTo(plot.right(), before);
    path.lineTo(plot.bottomRight());
    const MemoryLook look = look_of(static_cast<MemoryClass>(c));
    painter.fillPath(path, colors.background);
    painter.fillPath(path, QBrush(look.color, look.pattern));
  }
  const MemoryPoint& top = curve_.points[at_peak];
  const QPointF mark = point_of(plot, x, y, static_cast<double>(top.time.value),
                                static_cast<double>(total(top.amounts).value));
  painter.setPen(QPen(colors.text, 1, Qt::DashLine));
  painter.drawLine(mark, QPointF(mark.x(), plot.bottom()));
  painter.drawText(
      QRectF(mark.x() - 150, plot.top() - 16, 300, 16), Qt::AlignCenter,
      tr("peak %1 at %2")
          .arg(bytes_text(total(top.amounts)), time_of(static_cast<double>(top.time.value))));
}

void MemoryCurve::mousePressEvent(QMouseEvent* event) {
  const double share = (event->position().x() - plot_rect().left()) / plot_rect().width();
  if (share < 0 || share > 1) return;
  Q_EMIT time_chosen(static_cast<qint64>(share * static_cast<double>(end_.value)));
}

}  // namespace meshwright::gui
