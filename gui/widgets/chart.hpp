/// Base of all charts: the background of the theme, and a tooltip per item.
#pragma once

#include <QWidget>

#include "gui/widgets/theme.hpp"

class QPainter;

namespace meshwright::gui {

class Chart : public QWidget {
 public:
  using QWidget::QWidget;

 protected:
  /// Paints on the background; nothing outside `exposed` is visible.
  virtual void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const = 0;
  /// The tooltip at `point`; empty for none.
  virtual QString tip_at(const QPointF& point) const;
  /// The plot rectangle of a chart with axes.
  QRectF plot_rect() const;

  void paintEvent(QPaintEvent* event) final;
  bool event(QEvent* event) final;
};

}  // namespace meshwright::gui
