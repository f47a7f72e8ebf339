/// Axes of charts: where ticks stand, and how values become pixels.
#pragma once

#include <QPainter>
#include <QRectF>
#include <QString>
#include <functional>
#include <vector>

#include "gui/theme.hpp"

namespace meshwright::gui {

enum class AxisScale : std::uint8_t { kLinear, kLogarithmic };

/// Values from `low` to `high`, low < high; logarithmic: low > 0.
struct ChartAxis {
  double low = 0, high = 1;
  AxisScale scale = AxisScale::kLinear;
  bool is_binary = false;  ///< of bytes: ticks are round in KiB, MiB, GiB
  bool is_whole = false;   ///< of counts: no ticks between whole numbers; linear
  QString title;
  std::function<QString(double)> text;  ///< of a tick

  /// 0 at `low`, 1 at `high`.
  double share_of(double value) const;
  double value_at(double share) const;
};

/// An axis that holds all values with a little room; one value alone gets room around it. Values
/// that a logarithmic axis cannot show are left out.
ChartAxis axis_of(const std::vector<double>& values, AxisScale scale, bool from_zero = false);

/// Linear: about `wanted` round values (1, 2 or 5 times a power of ten). Logarithmic: powers of
/// ten, of binary axes powers of two, thinned out to about `wanted`, or round values where there is
/// less than one of them.
std::vector<double> ticks_of(const ChartAxis& axis, int wanted);

/// As many ticks as can be labelled side by side on an axis of `length` pixels, where the label of
/// a value is `width_of(value)` pixels wide; one at least.
std::vector<double> ticks_apart(const ChartAxis& axis, double length,
                                const std::function<double(double)>& width_of);

/// The plot inside `outer` when there is room for tick labels and titles; then grid, ticks, titles.
QRectF plot_area(const QRectF& outer, const QFontMetricsF& metrics);
void paint_axes(QPainter& painter, const QRectF& plot, const ChartAxis& x, const ChartAxis& y,
                const ChartColours& colours);
/// Where a pair of values stands in the plot.
QPointF point_of(const QRectF& plot, const ChartAxis& x, const ChartAxis& y, double x_value,
                 double y_value);

}  // namespace meshwright::gui
