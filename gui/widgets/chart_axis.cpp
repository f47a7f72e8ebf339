#include "gui/widgets/chart_axis.hpp"

#include <algorithm>
#include <cmath>

#include "gui/text/number_text.hpp"

namespace meshwright::gui {
namespace {

constexpr double kRoom = 0.06;  ///< margin beyond the outermost values, as a fraction of the range
constexpr double kLogRoom = 0.08;  ///< the same on logarithmic axes, as a fraction of the decades

/// A step of 1, 2 or 5 times a power of ten that divides `range` into about `wanted` parts.
double round_step(double range, int wanted) {
  const double raw = range / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double lead = raw / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

/// The unit (a power of 1024) that the axis labels use.
double unit_of(const ChartAxis& axis) {
  if (!axis.is_binary || axis.high < 1) return 1;
  constexpr double kBitsOfUnit = 10;
  return std::exp2(kBitsOfUnit * std::floor(std::log2(axis.high) / kBitsOfUnit));
}

std::vector<double> linear_ticks(const ChartAxis& axis, int wanted) {
  const double low = axis.low, high = axis.high, unit = unit_of(axis);
  double step = unit * round_step((high - low) / unit, wanted);
  if (axis.is_whole) step = std::max(1.0, step);
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
    ticks.push_back(i * step);
  return ticks;
}

}  // namespace

double ChartAxis::share_of(double value) const {
  if (scale == AxisScale::kLinear) return (value - low) / (high - low);
  return std::log(value / low) / std::log(high / low);
}

double ChartAxis::value_at(double share) const {
  if (scale == AxisScale::kLinear) return low + share * (high - low);
  return low * std::pow(high / low, share);
}

ChartAxis axis_of(const std::vector<double>& values, AxisScale scale, bool from_zero) {
  ChartAxis axis;
  axis.scale = scale;
  bool is_first = true;
  for (const double value : values) {
    if (!std::isfinite(value) || (scale == AxisScale::kLogarithmic && value <= 0)) continue;
    axis.low = is_first ? value : std::min(axis.low, value);
    axis.high = is_first ? value : std::max(axis.high, value);
    is_first = false;
  }
  if (scale == AxisScale::kLogarithmic) {
    if (is_first) return axis.low = 1, axis.high = 10, axis;
    const double room = std::max(kLogRoom * std::log10(axis.high / axis.low), 0.05);
    axis.low *= std::pow(10.0, -room);
    axis.high *= std::pow(10.0, room);
    return axis;
  }
  if (is_first) return axis;
  if (from_zero) axis.low = std::min(0.0, axis.low);
  const double range = axis.high - axis.low;
  const double room = range > 0 ? kRoom * range : std::max(1.0, std::abs(axis.high)) / 2;
  axis.high += room;
  if (!from_zero || axis.low < 0) axis.low -= room;
  return axis;
}

std::vector<double> ticks_of(const ChartAxis& axis, int wanted) {
  if (axis.scale == AxisScale::kLinear) return linear_ticks(axis, wanted);
  const double base = axis.is_binary ? 2 : 10;
  const auto first = static_cast<int>(std::ceil(std::log(axis.low) / std::log(base) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log(axis.high) / std::log(base) + 1e-9));
  if (last <= first) return linear_ticks(axis, wanted);
  const int every = std::max(1, (last - first + wanted) / std::max(1, wanted));
  std::vector<double> ticks;
  for (int power = first; power <= last; power += every) ticks.push_back(std::pow(base, power));
  return ticks;
}

std::vector<double> ticks_apart(const ChartAxis& axis, double length,
                                const std::function<double(double)>& width_of) {
  constexpr double kDensest = 70, kGap = 8;
  std::vector<double> ticks;
  for (int wanted = std::max(1, static_cast<int>(length / kDensest)); wanted >= 1; --wanted) {
    ticks = ticks_of(axis, wanted);
    bool fits = true;
    for (std::size_t i = 1; i < ticks.size() && fits; ++i) {
      const double apart = length * (axis.share_of(ticks[i]) - axis.share_of(ticks[i - 1]));
      fits = apart >= (width_of(ticks[i]) + width_of(ticks[i - 1])) / 2 + kGap;
    }
    if (fits) return ticks;
  }
  ticks.resize(std::min<std::size_t>(1, ticks.size()));
  return ticks;
}

QString bytes_label(double bytes) { return bytes_text(Bytes(static_cast<std::int64_t>(bytes))); }
QString time_label(double ticks) { return time_text(Ticks(static_cast<std::int64_t>(ticks))); }

QRectF plot_area(const QRectF& outer, const QFontMetricsF& metrics) {
  const double line = metrics.height();
  const double labels = metrics.horizontalAdvance("0000.00 GiB");
  return outer.adjusted(labels + line + 8, line, -line, -2.4 * line - 8);
}

void paint_axes(QPainter& painter, const QRectF& plot, const ChartAxis& x, const ChartAxis& y,
                const ChartColors& colors) {
  const QFontMetricsF metrics(painter.font());
  const double line = metrics.height();
  const auto label = [](const ChartAxis& axis, double value) {
    return axis.text ? axis.text(value) : QString::number(value, 'g', 4);
  };
  const auto width_of = [&](double tick) { return metrics.horizontalAdvance(label(x, tick)); };
  for (const double tick : ticks_apart(x, plot.width(), width_of)) {
    const double at = plot.left() + plot.width() * x.share_of(tick);
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(at, plot.top()), QPointF(at, plot.bottom()));
    painter.setPen(colors.faint_text);
    const QString text = label(x, tick);
    const double half = metrics.horizontalAdvance(text) / 2 + 1;
    const double middle = std::min(at, plot.right() + line - half);  // stay inside the widget
    painter.drawText(QRectF(middle - half, plot.bottom() + 6, 2 * half, line), Qt::AlignCenter,
                     text);
  }
  for (const double tick : ticks_of(y, static_cast<int>(plot.height() / 45))) {
    const double at = plot.bottom() - plot.height() * y.share_of(tick);
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(plot.left(), at), QPointF(plot.right(), at));
    painter.setPen(colors.faint_text);
    painter.drawText(QRectF(plot.left() - 124, at - line / 2, 120, line),
                     Qt::AlignRight | Qt::AlignVCenter, label(y, tick));
  }
  painter.setPen(colors.axis);
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  painter.drawLine(plot.bottomLeft(), plot.topLeft());
  painter.setPen(colors.text);
  painter.drawText(QRectF(plot.left(), plot.bottom() + line + 8, plot.width(), line),
                   Qt::AlignCenter, x.title);
  painter.save();
  painter.translate(plot.left() - metrics.horizontalAdvance("0000.00 GiB") - line,
                    plot.center().y());
  painter.rotate(-90);
  painter.drawText(QRectF(-plot.height() / 2, -line / 2, plot.height(), line), Qt::AlignCenter,
                   y.title);
  painter.restore();
}

QPointF point_of(const QRectF& plot, const ChartAxis& x, const ChartAxis& y, double x_value,
                 double y_value) {
  return {plot.left() + plot.width() * x.share_of(x_value),
          plot.bottom() - plot.height() * y.share_of(y_value)};
}

}  // namespace meshwright::gui
