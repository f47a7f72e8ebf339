/// What was measured as points on a chart, with what else is known of each of them. Pure.
#pragma once

#include "core/calibration.hpp"
#include "gui/point_chart.hpp"

namespace meshwright::gui {

QString title_of(const CollectiveCurve& curve);
QString title_of(const KernelFamily& family);

struct CurveSeries {
  PointSeries points;
  QString note;  ///< the law through them, or how far each is missed by the others; may be empty
};

/// With the line alpha + S / beta through the points.
CurveSeries series_of(const CollectiveCurve& curve);
/// Against arithmetic where there is any, else against memory traffic. With what all other points
/// say of each one, unless there are too few, or so many that it would take a while.
CurveSeries series_of(const KernelCurve& curve, bool without_outliers);

/// Values beyond the quartiles by more than one and a half times the distance of the quartiles
/// (Tukey, Exploratory Data Analysis, 1977): their indices, ascending. None among fewer than four.
std::vector<std::size_t> outliers_of(const std::vector<double>& values);

}  // namespace meshwright::gui
