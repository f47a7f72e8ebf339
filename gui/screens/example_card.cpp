#include "gui/screens/example_card.hpp"

#include <QPainter>
#include <QPainterPath>

#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

constexpr double kPadding = 12, kPictureHeight = 78;

/// Equal stage times are enough for a thumbnail; slowed-down pipeline ranks are applied.
StageTimes picture_times(const Scenario& s, const Schedule& schedule) {
  const Ticks pass(1'000'000);
  StageTimes times =
      uniform_times(static_cast<int>(schedule.placement.device_of_stage.size()), pass, pass, pass);
  for (std::size_t stage = 0; stage < times.forward.size(); ++stage) {
    const std::size_t device = schedule.placement.device_of_stage[stage].index();
    if (device >= s.what_if.slowness.size()) continue;
    for (std::vector<Ticks>* list : {&times.forward, &times.backward_input, &times.backward_weight})
      (*list)[stage] = Ticks(static_cast<std::int64_t>(static_cast<double>((*list)[stage].value) *
                                                       s.what_if.slowness[device]));
  }
  return times;
}

QColor color_of(Pass pass, const TimelineColors& colors) {
  switch (pass) {
    case Pass::kBackward:
      return colors.slice[static_cast<std::size_t>(SliceKind::kBackward)];
    case Pass::kBackwardInput:
      return colors.slice[static_cast<std::size_t>(SliceKind::kBackwardInput)];
    case Pass::kBackwardWeight:
      return colors.slice[static_cast<std::size_t>(SliceKind::kBackwardWeight)];
    case Pass::kForward:
    case Pass::kOutputScores:
    case Pass::kOutputGradient:
      break;
  }
  return colors.slice[static_cast<std::size_t>(SliceKind::kForward)];
}

}  // namespace

ExampleCard::ExampleCard(const QString& title, const QString& text, const Scenario& scenario,
                         QWidget* parent)
    : QAbstractButton(parent), text_(text) {
  setText(title);
  setAccessibleDescription(text);
  setFocusPolicy(Qt::StrongFocus);
  setCursor(Qt::PointingHandCursor);
  Plan plan;
  plan.strategy = scenario.strategy;
  schedule_ = schedule_of(plan);
  timing_ = time_schedule(schedule_, picture_times(scenario, schedule_));
}

QSize ExampleCard::sizeHint() const {
  return {260, static_cast<int>(kPictureHeight + 3 * kPadding + 3.4 * fontMetrics().height())};
}

void ExampleCard::enterEvent(QEnterEvent*) { update(); }
void ExampleCard::leaveEvent(QEvent*) { update(); }

void ExampleCard::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const ChartColors chart = chart_colors(palette());
  const TimelineColors colors = is_dark(palette()) ? dark_colors() : light_colors();
  const bool is_hot = underMouse() || hasFocus();
  painter.setPen(QPen(is_hot ? chart.accent : chart.axis, is_hot ? 2 : 1));
  painter.setBrush(chart.background);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 7, 7);
  painter.setRenderHint(QPainter::Antialiasing, false);

  const QRectF picture(kPadding, kPadding, width() - 2 * kPadding, kPictureHeight);
  const auto devices = static_cast<double>(schedule_.orders.size());
  const double row = picture.height() / devices;
  const double scale = picture.width() / static_cast<double>(timing_.makespan.value);
  for (std::size_t d = 0; d < schedule_.orders.size(); ++d) {
    const double top = picture.top() + row * static_cast<double>(d);
    const double height = std::max(1.0, row - (row > 4 ? 1 : 0));
    painter.fillRect(QRectF(picture.left(), top, picture.width(), height),
                     QColor::fromRgba(colors.idle));
    for (std::size_t i = 0; i < schedule_.orders[d].size(); ++i) {
      const double from = static_cast<double>(timing_.starts[d][i].value) * scale;
      const double to = static_cast<double>(timing_.ends[d][i].value) * scale;
      painter.fillRect(QRectF(picture.left() + from, top,
                              std::max(0.6, to - from - (to - from > 4 ? 0.6 : 0)), height),
                       color_of(schedule_.orders[d][i].pass, colors));
    }
  }
  QFont bold = font();
  bold.setWeight(QFont::DemiBold);
  painter.setFont(bold);
  painter.setPen(chart.text);
  const double text_top = picture.bottom() + kPadding * 0.7;
  const double line = fontMetrics().height();
  painter.drawText(QRectF(kPadding, text_top, width() - 2 * kPadding, line + 2), Qt::AlignLeft,
                   text());
  painter.setFont(font());
  painter.setPen(chart.faint_text);
  painter.drawText(QRectF(kPadding, text_top + line + 3, width() - 2 * kPadding, 2.3 * line),
                   Qt::AlignLeft | Qt::TextWordWrap, text_);
}

}  // namespace meshwright::gui
