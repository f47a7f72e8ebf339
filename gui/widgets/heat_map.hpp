/// A heat map with numbers where they fit and contour lines.
#pragma once

#include <functional>

#include "gui/widgets/chart.hpp"
#include "gui/widgets/iso_lines.hpp"

namespace meshwright::gui {

struct HeatMapContent {
  QString row_title, column_title;
  QStringList rows, columns;
  ValueGrid values;
  std::vector<std::vector<QString>> texts;  ///< per cell; the reason where a cell has no value
  std::vector<std::vector<bool>> marked;    ///< hatched: does not fit in memory
  std::vector<double> levels;               ///< of the contour lines
  std::function<QString(double)> level_text;
  bool more_is_better = false;
  int chosen_row = -1, chosen_column = -1;  ///< the current scenario
};

class HeatMap : public Chart {
  Q_OBJECT
 public:
  explicit HeatMap(QWidget* parent = nullptr);
  void show_content(HeatMapContent content);
  const HeatMapContent& content() const { return content_; }
  /// Rectangle of a cell in widget coordinates.
  QRectF cell_at(int row, int column) const;
  QSize sizeHint() const override { return {640, 400}; }

 Q_SIGNALS:
  /// A click, or Enter on the cell with the keyboard cursor.
  void cell_chosen(int row, int column);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QRectF grid_area() const;
  QPoint cell_of(const QPointF& point) const;  ///< (column, row); (-1, -1) outside all cells
  QColor color_of(double value) const;
  void paint_cells(QPainter& painter) const;
  void paint_lines(QPainter& painter) const;
  void paint_texts(QPainter& painter) const;
  void paint_levels(QPainter& painter) const;
  void paint_titles(QPainter& painter) const;
  HeatMapContent content_;
  double low_ = 0, high_ = 1;
  QPoint cursor_;  ///< (column, row) of the keyboard cursor
};

}  // namespace meshwright::gui
