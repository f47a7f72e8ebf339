/// Measured points over a size on two logarithmic axes, connected by a line if they form one curve.
#pragma once

#include <vector>

#include "gui/widgets/chart.hpp"
#include "gui/widgets/chart_axis.hpp"

namespace meshwright::gui {

struct PointSeries {
  QString x_title, y_title;
  std::vector<QPointF> points;
  std::vector<QString> texts;    ///< tooltip per point
  std::vector<double> expected;  ///< leave-one-out prediction of y per point; empty if unknown
  std::vector<QPointF> line;     ///< the fitted law, by x; may be empty
  bool is_joined = false;
  bool x_is_bytes = false;
  std::function<QString(double)> x_text, y_text;
};

class PointChart : public Chart {
  Q_OBJECT
 public:
  explicit PointChart(QWidget* parent = nullptr);
  void show_series(PointSeries series);
  const PointSeries& series() const { return series_; }
  QSize sizeHint() const override { return {640, 420}; }

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;

 private:
  QPointF place_of(std::size_t point) const;
  QPointF place_of_expected(std::size_t point) const;
  PointSeries series_;
  ChartAxis x_, y_;
};

}  // namespace meshwright::gui
