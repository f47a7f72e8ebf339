/// Memory of one rank over the step, stacked by memory class; the peak is marked.
#pragma once

#include "gui/timeline/tracks.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

class MemoryCurve : public Chart {
  Q_OBJECT
 public:
  explicit MemoryCurve(QWidget* parent = nullptr);
  void show_curve(MemoryCurveOfRank curve, Nanoseconds end);
  QSize sizeHint() const override { return {480, 240}; }

 Q_SIGNALS:
  /// Emitted on a click, with the position on the time axis.
  void time_chosen(qint64 time_ns);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  std::size_t peak() const;
  MemoryCurveOfRank curve_;
  Nanoseconds end_;
};

}  // namespace meshwright::gui
