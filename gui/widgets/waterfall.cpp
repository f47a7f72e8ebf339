#include "gui/widgets/waterfall.hpp"

#include <QPainter>
#include <algorithm>
#include <cstdlib>

#include "gui/text/number_text.hpp"
#include "gui/widgets/theme.hpp"

namespace meshwright::gui {
namespace {

QString signed_time(Ticks difference) {
  return (difference < Ticks() ? QString("−") : QString("+")) +
         time_text(Ticks(std::abs(difference.value)));
}

}  // namespace

Waterfall::Waterfall(QWidget* parent) : Chart(parent) {
  setAccessibleName(tr("Step time difference"));
}

void Waterfall::show_parts(const QString& before, const QString& after,
                           std::vector<WaterfallPart> parts) {
  before_ = before;
  after_ = after;
  total_before_ = total_after_ = {};
  for (const WaterfallPart& part : parts) {
    total_before_ += part.before;
    total_after_ += part.after;
  }
  std::erase_if(parts, [](const WaterfallPart& part) { return part.before == part.after; });
  std::stable_sort(parts.begin(), parts.end(), [](const WaterfallPart& a, const WaterfallPart& b) {
    return (a.after - a.before) < (b.after - b.before);
  });
  parts_ = std::move(parts);
  QStringList said;
  for (const WaterfallPart& part : parts_)
    said += part.name + " " + signed_time(part.after - part.before);
  if (is_truncated()) said += tr("the axis starts at %1").arg(time_text(axis_range().low));
  setAccessibleDescription(said.join(", "));
  update();
}

void Waterfall::paint(QPainter& painter, const ChartColors& colors, const QRect&) const {
  if (before_.isEmpty()) return;
  const QFontMetricsF metrics(painter.font());
  double names = std::max(metrics.horizontalAdvance(before_), metrics.horizontalAdvance(after_));
  for (const WaterfallPart& part : parts_)
    names = std::max(names, metrics.horizontalAdvance(part.name));
  const double figures = metrics.horizontalAdvance("−000.00 ms") + 12;
  const QRectF plot = QRectF(rect()).adjusted(names + 16, 8, -figures, -8);
  const auto rows = static_cast<double>(parts_.size() + 3);  // totals and a note
  const double height = std::min(28.0, plot.height() / rows);

  const Range range = axis_range();
  const std::int64_t low = range.low.value, high = range.high.value;
  const auto x_of = [&](std::int64_t ticks) {
    return plot.left() +
           plot.width() * static_cast<double>(ticks - low) / static_cast<double>(high - low);
  };
  double y = plot.top();
  const auto row = [&](const QString& name, std::int64_t from, std::int64_t to, const QColor& color,
                       const QString& figure) {
    painter.setPen(colors.text);
    painter.drawText(QRectF(4, y, names + 4, height), Qt::AlignRight | Qt::AlignVCenter, name);
    const double left = x_of(std::min(from, to)), right = x_of(std::max(from, to));
    painter.fillRect(QRectF(left, y + 3, std::max(1.5, right - left), height - 6), color);
    painter.drawText(QRectF(right + 5, y, figures + plot.width(), height), Qt::AlignVCenter,
                     figure);
    y += height;
  };
  row(before_, low, total_before_.value, colors.series[0], time_text(total_before_));
  Ticks at = total_before_;
  for (const WaterfallPart& part : parts_) {
    const Ticks difference = part.after - part.before;
    row(part.name, at.value, (at + difference).value,
        difference < Ticks() ? colors.good : colors.bad, signed_time(difference));
    at += difference;
  }
  row(after_, low, total_after_.value, colors.series[0], time_text(total_after_));
  if (is_truncated()) mark_truncation(painter, colors, plot, height);
}

Waterfall::Range Waterfall::axis_range() const {
  Range range{std::min(total_before_, total_after_), std::max(total_before_, total_after_)};
  Ticks at = total_before_;
  for (const WaterfallPart& part : parts_) {
    at += part.after - part.before;
    range = {std::min(range.low, at), std::max(range.high, at)};
  }
  constexpr std::int64_t kMargin = 8;  // of the range, at each side
  const Ticks room = std::max(Ticks(1), (range.high - range.low) / kMargin);
  return {std::max(Ticks(), range.low - room), range.high + room};
}

/// Two slanted lines through the bars of the totals, whose lengths are not to scale.
void Waterfall::mark_truncation(QPainter& painter, const ChartColors& colors, const QRectF& plot,
                                double height) const {
  constexpr double kSlant = 6, kFrom = 10, kApart = 5;
  painter.setPen(QPen(colors.background, 2));
  for (const double top :
       {plot.top(), plot.top() + height * static_cast<double>(parts_.size() + 1)})
    for (const double x : {plot.left() + kFrom, plot.left() + kFrom + kApart})
      painter.drawLine(QPointF(x, top + height - 2), QPointF(x + kSlant, top + 2));
  painter.setPen(colors.faint_text);
  painter.drawText(QRectF(plot.left(), plot.top() + height * static_cast<double>(parts_.size() + 2),
                          plot.width(), height),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   "⫽ " + tr("the axis starts at %1").arg(time_text(axis_range().low)));
}

}  // namespace meshwright::gui
