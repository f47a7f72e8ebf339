/// Chart axes: tick positions and the mapping from values to pixels.
#pragma once

#include <QPainter>
#include <QRectF>
#include <QString>
#include <functional>
#include <vector>

#include "gui/widgets/theme.hpp"

namespace meshwright::gui {

enum class AxisScale : std::uint8_t { kLinear, kLogarithmic };

/// Values from `low` to `high`, with low < high, and low > 0 on a logarithmic axis.
struct ChartAxis {
  double low = 0, high = 1;
  AxisScale scale = AxisScale::kLinear;
  bool is_binary = false;  ///< for bytes: ticks are round in KiB, MiB, GiB
  bool is_whole = false;   ///< for counts: ticks at whole numbers only; linear axes
  QString title;
  std::function<QString(double)> text;  ///< label of a tick

  /// 0 at `low`, 1 at `high`.
  double share_of(double value) const;
  double value_at(double share) const;
};

/// An axis that covers all values with a small margin, also around a single value. Values that a
/// logarithmic axis cannot show are ignored.
ChartAxis axis_of(const std::vector<double>& values, AxisScale scale, bool from_zero = false);

/// Linear: about `wanted` round values (1, 2 or 5 times a power of ten). Logarithmic: powers of
/// ten, or of two on binary axes, thinned out to about `wanted`; round values if the axis spans
/// less than one power.
std::vector<double> ticks_of(const ChartAxis& axis, int wanted);

/// As many ticks as have room for their labels on an axis of `length` pixels, at least one; the
/// label of a value is `width_of(value)` pixels wide.
std::vector<double> ticks_apart(const ChartAxis& axis, double length,
                                const std::function<double(double)>& width_of);

/// Labels of axes in bytes and in Ticks.
QString bytes_label(double bytes);
QString time_label(double ticks);

/// The plot rectangle inside `outer`, leaving room for tick labels and titles.
QRectF plot_area(const QRectF& outer, const QFontMetricsF& metrics);
void paint_axes(QPainter& painter, const QRectF& plot, const ChartAxis& x, const ChartAxis& y,
                const ChartColors& colors);
/// Pixel position of a pair of values in the plot.
QPointF point_of(const QRectF& plot, const ChartAxis& x, const ChartAxis& y, double x_value,
                 double y_value);

}  // namespace meshwright::gui
