#include "gui/widgets/point_chart.hpp"

#include <QPainter>

namespace meshwright::gui {

PointChart::PointChart(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Measured points"));
}

void PointChart::show_series(PointSeries series) {
  series_ = std::move(series);
  std::vector<double> xs, ys;
  for (const QPointF& point : series_.points) {
    xs.push_back(point.x());
    ys.push_back(point.y());
  }
  ys.insert(ys.end(), series_.expected.begin(), series_.expected.end());
  for (const QPointF& point : series_.line) ys.push_back(point.y());
  x_ = axis_of(xs, AxisScale::kLogarithmic);
  y_ = axis_of(ys, AxisScale::kLogarithmic);
  x_.is_binary = series_.x_is_bytes;
  x_.title = series_.x_title;
  y_.title = series_.y_title;
  x_.text = series_.x_text;
  y_.text = series_.y_text;
  update();
}

QPointF PointChart::place_of(std::size_t point) const {
  return point_of(plot_rect(), x_, y_, series_.points[point].x(), series_.points[point].y());
}

QPointF PointChart::place_of_expected(std::size_t point) const {
  return point_of(plot_rect(), x_, y_, series_.points[point].x(), series_.expected[point]);
}

void PointChart::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  painter.setRenderHint(QPainter::Antialiasing);
  if (series_.points.empty()) return;
  paint_axes(painter, plot_rect(), x_, y_, colors);
  QPolygonF line;
  for (std::size_t i = 0; i < series_.points.size(); ++i) line += place_of(i);
  painter.setPen(QPen(colors.series[0], 1.5));
  if (series_.is_joined) painter.drawPolyline(line);
  QPolygonF law;
  for (const QPointF& point : series_.line)
    law += point_of(plot_rect(), x_, y_, point.x(), point.y());
  painter.setPen(QPen(colors.series[1], 1.5, Qt::DashLine));
  painter.drawPolyline(law);
  // A ring at the prediction, connected to the measured point.
  painter.setPen(QPen(colors.series[1], 1.5));
  painter.setBrush(Qt::NoBrush);
  for (std::size_t i = 0; i < series_.expected.size(); ++i) {
    painter.drawLine(place_of_expected(i), line[static_cast<qsizetype>(i)]);
    painter.drawEllipse(place_of_expected(i), 4.5, 4.5);
  }
  painter.setPen(QPen(colors.series[0], 1.5));
  painter.setBrush(colors.series[0]);
  for (const QPointF& point : line) painter.drawEllipse(point, 3.5, 3.5);
}

QString PointChart::tip_at(const QPointF& point) const {
  constexpr double kReach = 10;
  for (std::size_t i = 0; i < series_.points.size(); ++i)
    if (QLineF(place_of(i), point).length() <= kReach) return series_.texts[i];
  return {};
}

}  // namespace meshwright::gui
