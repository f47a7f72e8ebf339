#include "gui/widgets/chart.hpp"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "gui/widgets/chart_axis.hpp"

namespace meshwright::gui {

QString Chart::tip_at(const QPointF&) const { return toolTip(); }

QRectF Chart::plot_rect() const { return plot_area(rect(), QFontMetricsF(font())); }

void Chart::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  const ChartColors colors = chart_colors(palette());
  painter.fillRect(rect(), colors.background);
  paint(painter, colors, event->rect());
}

bool Chart::event(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) update();
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), tip_at(help->pos()), this);
  return true;
}

}  // namespace meshwright::gui
