/// Scatter plot of plans: step time over peak memory, with the Pareto front.
#pragma once

#include <vector>

#include "core/formats/plan.hpp"
#include "gui/widgets/chart.hpp"

namespace meshwright::gui {

/// Indices of the Pareto-optimal plans, ordered by memory.
std::vector<std::size_t> pareto_front(const std::vector<PlanFigures>& plans);

class ParetoScatter : public Chart {
  Q_OBJECT
 public:
  explicit ParetoScatter(QWidget* parent = nullptr);
  void show_plans(std::vector<PlanFigures> plans);
  /// -1 for none.
  void set_chosen(int plan);
  QPointF place_of(int plan) const;
  QSize sizeHint() const override { return {420, 300}; }

 Q_SIGNALS:
  void plan_chosen(int plan);

 protected:
  void paint(QPainter& painter, const ChartColors& colors, const QRect& exposed) const override;
  QString tip_at(const QPointF& point) const override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  int plan_at(const QPointF& point) const;
  std::vector<PlanFigures> plans_;
  int chosen_ = -1;
};

}  // namespace meshwright::gui
