/// Bar chart of the time of one micro-batch per pipeline rank. Dragging the top of a bar makes the
/// rank slower or faster, to model a straggler or a stage of a different size.
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

class StageBars : public Chart {
  Q_OBJECT
 public:
  explicit StageBars(QWidget* parent = nullptr);
  /// By pipeline rank: the time of one micro-batch, and
  /// the slowdown factor it includes (empty: all 1).
  void show_times(std::vector<Ticks> times, std::vector<double> slowness);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, 60}; }
  /// Drag handle: the middle of the top edge of a bar.
  QPoint handle_of(int pipeline_rank) const;

 Q_SIGNALS:
  void slowness_changed(int pipeline_rank, double factor);
  void settled();

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QRectF bar_of(int pipeline_rank) const;
  int pipeline_rank_at(const QPointF& point) const;
  double slowness_of(int pipeline_rank) const;
  void change(int pipeline_rank, double factor);
  std::vector<Ticks> times_;
  std::vector<double> slowness_;
  Ticks full_scale_;  ///< time at the top of the chart; fixed while dragging
  int dragged_ = -1;
  Ticks dragged_from_;  ///< time of the dragged bar without slowdown
  int chosen_ = 0;      ///< selected by keyboard
};

}  // namespace meshwright::gui
