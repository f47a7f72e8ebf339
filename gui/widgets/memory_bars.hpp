/// Stacked bars: peak memory per pipeline rank and memory class, with the device capacity.
#pragma once

#include <QColor>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

/// The color of a memory class, used everywhere; a
/// pattern separates neighbors without relying on color.
struct MemoryLook {
  QColor color;
  Qt::BrushStyle pattern = Qt::SolidPattern;
};
MemoryLook look_of(MemoryClass memory_class);
QString text_of(MemoryClass memory_class);

class MemoryBars : public Chart {
  Q_OBJECT
 public:
  explicit MemoryBars(QWidget* parent = nullptr);
  /// One entry per pipeline rank: its fullest device. A `capacity` of zero means unknown.
  void show_amounts(std::vector<MemoryAmounts> amounts, Bytes capacity);
  int chosen() const { return chosen_; }
  QRectF bar_of(int pipeline_rank) const;
  QSize sizeHint() const override { return {480, 300}; }

 Q_SIGNALS:
  void pipeline_rank_chosen(int pipeline_rank);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  double full_scale() const;
  int pipeline_rank_at(const QPointF& point) const;
  void choose(int pipeline_rank);
  void paint_bar(QPainter& painter, int pipeline_rank) const;
  std::vector<MemoryAmounts> amounts_;
  Bytes capacity_;
  int chosen_ = 0;
};

}  // namespace meshwright::gui
