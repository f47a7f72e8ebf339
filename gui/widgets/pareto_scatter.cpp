#include "gui/widgets/pareto_scatter.hpp"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <numeric>

#include "gui/text/number_text.hpp"
#include "gui/widgets/chart_axis.hpp"

namespace meshwright::gui {
namespace {

double step_of(const PlanFigures& plan) { return static_cast<double>(plan.step_time.value); }
double memory_of(const PlanFigures& plan) { return static_cast<double>(plan.peak_memory.value); }

ChartAxis axis_over(const std::vector<PlanFigures>& plans, double (*value_of)(const PlanFigures&)) {
  std::vector<double> values;
  values.reserve(plans.size());
  for (const PlanFigures& plan : plans) values.push_back(value_of(plan));
  return axis_of(values, AxisScale::kLinear);
}

ChartAxis step_axis(const std::vector<PlanFigures>& plans) {
  ChartAxis axis = axis_over(plans, step_of);
  axis.title = ParetoScatter::tr("step time");
  axis.text = time_label;
  return axis;
}

ChartAxis memory_axis(const std::vector<PlanFigures>& plans) {
  ChartAxis axis = axis_over(plans, memory_of);
  axis.title = ParetoScatter::tr("peak memory");
  axis.is_binary = true;
  axis.text = bytes_label;
  return axis;
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<PlanFigures>& plans) {
  std::vector<std::size_t> order(plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(plans[a].peak_memory, plans[a].step_time) <
           std::pair(plans[b].peak_memory, plans[b].step_time);
  });
  std::vector<std::size_t> front;
  for (const std::size_t plan : order)
    if (front.empty() || plans[plan].step_time < plans[front.back()].step_time)
      front.push_back(plan);
  return front;
}

ParetoScatter::ParetoScatter(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Plans by step time and memory"));
}

void ParetoScatter::show_plans(std::vector<PlanFigures> plans) {
  plans_ = std::move(plans);
  chosen_ = -1;
  update();
}

void ParetoScatter::set_chosen(int plan) {
  chosen_ = plan;
  update();
}

QPointF ParetoScatter::place_of(int plan) const {
  const PlanFigures& figures = plans_[static_cast<std::size_t>(plan)];
  return point_of(plot_rect(), memory_axis(plans_), step_axis(plans_), memory_of(figures),
                  step_of(figures));
}

void ParetoScatter::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  painter.setRenderHint(QPainter::Antialiasing);
  if (plans_.empty()) return;
  paint_axes(painter, plot_rect(), memory_axis(plans_), step_axis(plans_), colors);
  QPolygonF front;
  for (const std::size_t plan : pareto_front(plans_)) front += place_of(static_cast<int>(plan));
  painter.setPen(QPen(colors.axis, 1.5, Qt::DashLine));
  painter.drawPolyline(front);
  for (int i = 0; i < static_cast<int>(plans_.size()); ++i) {
    const bool is_chosen = i == chosen_;
    painter.setBrush(is_chosen ? colors.series[1] : colors.series[0]);
    painter.setPen(QPen(is_chosen ? colors.text : colors.background, is_chosen ? 2 : 1));
    painter.drawEllipse(place_of(i), is_chosen ? 8 : 5, is_chosen ? 8 : 5);
  }
  // Overlapping numbers are omitted (the tooltip shows them); the best plan's number comes first.
  painter.setPen(colors.faint_text);
  std::vector<QRectF> taken;
  for (int i = 0; i < static_cast<int>(plans_.size()); ++i) {
    const QString number = QString::number(i + 1);
    QRectF box = painter.fontMetrics().boundingRect(number);
    box.moveBottomLeft(place_of(i) + QPointF(8, -4));
    if (std::any_of(taken.begin(), taken.end(),
                    [&](const QRectF& other) { return other.intersects(box); }))
      continue;
    taken.push_back(box);
    painter.drawText(box, Qt::AlignCenter, number);
  }
}

int ParetoScatter::plan_at(const QPointF& point) const {
  constexpr double kReach = 12;
  int nearest = -1;
  double distance = kReach;
  for (int i = 0; i < static_cast<int>(plans_.size()); ++i) {
    const double d = QLineF(place_of(i), point).length();
    if (d >= distance) continue;
    distance = d;
    nearest = i;
  }
  return nearest;
}

void ParetoScatter::mousePressEvent(QMouseEvent* event) {
  const int plan = plan_at(event->position());
  if (plan < 0) return;
  set_chosen(plan);
  Q_EMIT plan_chosen(plan);
}

QString ParetoScatter::tip_at(const QPointF& point) const {
  const int plan = plan_at(point);
  if (plan < 0) return {};
  const PlanFigures& figures = plans_[static_cast<std::size_t>(plan)];
  return tr("plan %1: %2, %3")
      .arg(plan + 1)
      .arg(time_text(figures.step_time), bytes_text(figures.peak_memory));
}

}  // namespace meshwright::gui
