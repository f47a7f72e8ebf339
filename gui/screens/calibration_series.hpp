/// Calibration curves as chart points, with tooltips and fitted laws. Pure functions.
#pragma once

#include "core/cost/calibration.hpp"
#include "gui/widgets/point_chart.hpp"

namespace meshwright::gui {

QString title_of(const CollectiveCurve& curve);
QString title_of(const KernelFamily& family);

struct CurveSeries {
  PointSeries points;
  QString note;  ///< the fitted law, or the leave-one-out error; may be empty
};

/// With the fitted line alpha + S / beta.
CurveSeries series_of(const CollectiveCurve& curve);
/// Over FLOPs for matrix products and attention, over memory traffic
/// for other kernels. With a leave-one-out prediction per point, unless
/// there are too few points, or so many that the fits would take long.
CurveSeries series_of(const KernelCurve& curve, bool without_outliers);

/// Ascending indices of values more than 1.5 × IQR outside the quartiles (Tukey, Exploratory Data
/// Analysis, 1977). Empty for fewer than four values.
std::vector<std::size_t> outliers_of(const std::vector<double>& values);

}  // namespace meshwright::gui
