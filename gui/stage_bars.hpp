/// How long every pipeline position works on one micro-batch, as bars. Dragging the top of a bar
/// makes its position slower or faster: a straggler, or a stage of another size.
#pragma once

#include <QWidget>
#include <vector>

#include "core/units.hpp"

namespace meshwright::gui {

class StageBars : public QWidget {
  Q_OBJECT
 public:
  explicit StageBars(QWidget* parent = nullptr);
  /// By pipeline position: what a micro-batch takes, and the slowness in it (empty: all 1).
  void show_times(std::vector<Ticks> times, std::vector<double> slowness);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {120, 60}; }
  /// Middle of the top of a bar.
  QPoint handle_of(int position) const;

 Q_SIGNALS:
  void slowness_changed(int position, double factor);
  void settled();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF bar_of(int position) const;
  int position_at(const QPointF& point) const;
  double slowness_of(int position) const;
  void change(int position, double factor);
  std::vector<Ticks> times_;
  std::vector<double> slowness_;
  Ticks full_scale_;  ///< at the top; held while dragging
  int dragged_ = -1;
  Ticks dragged_from_;  ///< of the dragged bar without slowness
  int chosen_ = 0;      ///< by keyboard
};

}  // namespace meshwright::gui
