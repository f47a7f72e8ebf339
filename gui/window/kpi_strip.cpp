#include "gui/window/kpi_strip.hpp"

#include <QFrame>
#include <QVBoxLayout>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/widgets/flow_layout.hpp"

namespace meshwright::gui {
namespace {

/// Change relative to the snapshot: "−3.1 %"; percentage points for fractions.
QString change_text(double now, double then) {
  if (then == 0) return {};
  const double change = now / then - 1;
  if (std::abs(change) < 5e-4) return QObject::tr("same as A");
  return QObject::tr("%1 vs A").arg((change > 0 ? "+" : "−") + percent_text(std::abs(change)));
}
QString points_text(double now, double then) {
  const double change = now - then;
  if (std::abs(change) < 5e-4) return QObject::tr("same as A");
  return QObject::tr("%1 vs A").arg((change > 0 ? "+" : "−") +
                                    percent_text(std::abs(change)).replace("%", QObject::tr("pt")));
}

}  // namespace

KpiStrip::KpiStrip(QWidget* parent) : QWidget(parent) {
  auto* row = new FlowLayout(this, FlowLayout::Spare::kShared);
  row->setContentsMargins(8, 6, 8, 6);
  row->setSpacing(6);
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  step_ = add_card(tr("Step time"),
                   tr("Time of one training step, from the first task start to the last task end"));
  bubble_ = add_card(
      tr("Bubble"),
      tr("Bubble fraction of the period, the steady-state time between steps; mean over ranks, and "
         "below that of the rank with the smallest bubble"));
  mfu_ = add_card(tr("MFU"),
                  tr("Model FLOPs utilization: model FLOP/s over the device's peak FLOP/s"));
  memory_ = add_card(tr("Peak memory"), tr("Peak memory of the fullest device, and its capacity"));
  throughput_ = add_card(tr("Tokens/s per GPU"),
                         tr("Tokens per step divided by step time and number of devices"));
  bound_ = add_card(
      tr("Lower bound"),
      tr("Lower bound on the pipeline makespan for any order of these passes, and the gap to it"));
}

KpiStrip::Card KpiStrip::add_card(const QString& title, const QString& hint) {
  auto* frame = new QFrame;
  frame->setProperty("role", "card");
  frame->setToolTip(hint);
  auto* column = new QVBoxLayout(frame);
  column->setContentsMargins(10, 4, 10, 4);
  column->setSpacing(0);
  auto* name = new QLabel(title);
  name->setProperty("role", "faint");
  Card card{new QLabel("–"), new QLabel};
  QFont large = font();
  large.setPointSizeF(large.pointSizeF() * 1.45);
  large.setWeight(QFont::DemiBold);
  card.value->setFont(large);
  card.value->setAccessibleName(title);
  card.beside->setProperty("role", "faint");
  column->addWidget(name);
  column->addWidget(card.value);
  column->addWidget(card.beside);
  layout()->addWidget(frame);
  return card;
}

void KpiStrip::show(const Card& card, const QString& value, const QString& beside) {
  card.value->setText(value);
  card.beside->setText(beside);
}

/// MFU, memory and throughput; unknown if pass times were set by hand.
void KpiStrip::show_device_figures(const Simulation& s, const Simulation* a) {
  if (sets_pass_times(s.scenario.what_if)) {
    for (const Card& card : {mfu_, memory_, throughput_}) show(card, "–", tr("times set by hand"));
    return;
  }
  const PlanFigures& f = s.figures;
  const bool has_a = a != nullptr && !sets_pass_times(a->scenario.what_if);
  show(mfu_, percent_text(f.mfu),
       has_a ? points_text(f.mfu, a->figures.mfu) : tr("HFU %1").arg(percent_text(f.hfu)));
  const bool fits = f.peak_memory <= f.memory_capacity;
  show(memory_, bytes_text(f.peak_memory),
       fits ? tr("of %1").arg(bytes_text(f.memory_capacity))
            : tr("⚠ %1 over capacity").arg(bytes_text(f.peak_memory - f.memory_capacity)));
  show(throughput_, count_text(std::llround(f.tokens_per_second_per_gpu)),
       has_a ? change_text(f.tokens_per_second_per_gpu, a->figures.tokens_per_second_per_gpu)
             : QString());
}

void KpiStrip::show_simulation(const Simulation* s, const Simulation* a, bool is_current,
                               TimeUnit unit) {
  setEnabled(s != nullptr && is_current);
  if (s == nullptr) return;
  const PlanFigures& f = s->figures;
  const auto against = [&](auto&& text) { return a != nullptr ? text(a->figures) : QString(); };
  show(step_, time_text(f.step_time, unit), against([&](const PlanFigures& g) {
         return change_text(ratio(f.step_time, g.step_time), 1);
       }));
  show(bubble_, percent_text(f.bubble_of_period),
       a != nullptr ? points_text(f.bubble_of_period, a->figures.bubble_of_period)
                    : tr("busiest rank %1").arg(percent_text(f.busiest_rank_bubble)));
  show_device_figures(*s, a);
  if (s->bounds)
    show(bound_, time_text(s->bounds->makespan, unit),
         tr("gap %1").arg(
             percent_text(ratio(s->evaluation.pipeline_makespan, s->bounds->makespan) - 1)));
  else
    show(bound_, "–", tr("not available"));
}

}  // namespace meshwright::gui
