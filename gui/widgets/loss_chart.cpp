#include "gui/widgets/loss_chart.hpp"

#include <QPainter>
#include <cmath>

#include "gui/widgets/chart_axis.hpp"

namespace meshwright::gui {

LossChart::LossChart(QWidget* parent) : Chart(parent) { setAccessibleName(tr("Loss per step")); }

void LossChart::clear() {
  losses_.clear();
  update();
}

void LossChart::add(int step, double loss) {
  losses_.emplace_back(step, loss);
  setAccessibleDescription(tr("step %1: %2").arg(step).arg(loss));
  update();
}

void LossChart::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  painter.setRenderHint(QPainter::Antialiasing);
  if (losses_.empty()) return;
  std::vector<double> steps, values;
  for (const auto& [step, loss] : losses_) {
    steps.push_back(step);
    values.push_back(loss);
  }
  ChartAxis x = axis_of(steps, AxisScale::kLinear), y = axis_of(values, AxisScale::kLinear);
  x.title = tr("step");
  x.is_whole = true;
  x.text = [](double step) { return QString::number(std::lround(step)); };
  y.title = tr("loss");
  const QRectF plot = plot_rect();
  paint_axes(painter, plot, x, y, colors);
  QPolygonF line;
  for (const auto& [step, loss] : losses_) line += point_of(plot, x, y, step, loss);
  painter.setPen(QPen(colors.series[0], 2));
  painter.drawPolyline(line);
  painter.setBrush(colors.series[0]);
  for (const QPointF& point : line) painter.drawEllipse(point, 3, 3);
}

}  // namespace meshwright::gui
