/// Draws a graph of operators, colored and numbered by stage. Ctrl and the wheel zoom.
#pragma once

#include <memory>

#include "gui/widgets/chart.hpp"
#include "gui/widgets/graph_layout.hpp"

namespace meshwright::gui {

class GraphMap : public Chart {
  Q_OBJECT
 public:
  explicit GraphMap(QWidget* parent = nullptr);
  /// Null clears it.
  void show_drawing(std::shared_ptr<const GraphDrawing> drawing);
  const GraphDrawing* drawing() const { return drawing_.get(); }
  int chosen() const { return chosen_; }
  void choose(int box);
  void zoom_to(double zoom);
  double zoom() const { return zoom_; }
  QSize sizeHint() const override;
  QRect place_of(int box) const;

 Q_SIGNALS:
  void box_chosen(int box);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  int box_at(const QPointF& point) const;

  std::shared_ptr<const GraphDrawing> drawing_;
  int chosen_ = -1;
  double zoom_ = 0.75;
};

}  // namespace meshwright::gui
