/// Training loss per step of a run.
#pragma once

#include <vector>

#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

class LossChart : public Chart {
  Q_OBJECT
 public:
  explicit LossChart(QWidget* parent = nullptr);
  void clear();
  void add(int step, double loss);
  std::size_t size() const { return losses_.size(); }
  QSize sizeHint() const override { return {420, 220}; }

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;

 private:
  std::vector<std::pair<double, double>> losses_;  ///< (step, loss)
};

}  // namespace meshwright::gui
