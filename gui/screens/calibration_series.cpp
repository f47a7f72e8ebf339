#include "gui/screens/calibration_series.hpp"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/text/number_text.hpp"
#include "gui/text/qstring_of.hpp"
#include "gui/widgets/chart_axis.hpp"
#include "simulator/cost/kernel_curve_fit.hpp"

namespace meshwright::gui {
namespace {

class CalibrationWords {
  Q_DECLARE_TR_FUNCTIONS(meshwright::gui::CalibrationScreen)
};

QString seconds_text(double seconds) { return time_text(to_ticks(Seconds(seconds))); }

/// The line from the first to the last size, sampled
/// finely enough to look smooth on logarithmic axes.
std::vector<QPointF> drawn(const AlphaBeta& law, const std::vector<CurvePoint>& points) {
  constexpr int kSteps = 64;
  const auto first = static_cast<double>(points.front().bytes.value);
  const auto last = static_cast<double>(points.back().bytes.value);
  std::vector<QPointF> line;
  for (int i = 0; i <= kSteps; ++i) {
    const double bytes = first * std::pow(last / first, static_cast<double>(i) / kSteps);
    line.emplace_back(bytes, law.alpha.value + bytes / law.beta.value);
  }
  return line;
}

/// Leave-one-out predictions: they show how far the curve can be trusted between its points.
std::vector<double> expected_without_itself(const KernelCurve& curve) {
  constexpr std::size_t kFewest = 3, kMost = 300;
  std::vector<double> expected;
  if (curve.points.size() < kFewest || curve.points.size() > kMost) return expected;
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    KernelCurve others = curve;
    others.points.erase(others.points.begin() + static_cast<std::ptrdiff_t>(i));
    expected.push_back(
        KernelCurveFit(others).time_of(kernel_of(curve.family, curve.points[i])).value);
  }
  return expected;
}

KernelCurve kept_of(const KernelCurve& curve, const std::vector<double>& expected) {
  std::vector<double> missed;
  for (std::size_t i = 0; i < expected.size(); ++i)
    missed.push_back(std::log(expected[i] / curve.points[i].time.value));
  KernelCurve kept{curve.family, {}};
  const std::vector<std::size_t> out = outliers_of(missed);
  for (std::size_t i = 0; i < curve.points.size(); ++i)
    if (!std::binary_search(out.begin(), out.end(), i)) kept.points.push_back(curve.points[i]);
  return kept;
}

QString text_of(const KernelPoint& point) {
  return CalibrationWords::tr("batch %1, %2 × %3 × %4: %5 (IQR %6 of the median, %7 samples)")
      .arg(point.batch)
      .arg(point.m)
      .arg(point.n)
      .arg(point.k)
      .arg(seconds_text(point.time.value), percent_text(point.spread))
      .arg(point.samples);
}

PointSeries points_of(const KernelCurve& curve, std::vector<double> expected) {
  const bool by_flops = curve.family.kind == KernelKind::kGemm ||
                        curve.family.kind == KernelKind::kGroupedGemm ||
                        curve.family.kind == KernelKind::kAttention;
  PointSeries series;
  series.x_title = by_flops ? CalibrationWords::tr("FLOPs per call")
                            : CalibrationWords::tr("memory traffic per call");
  series.y_title = CalibrationWords::tr("time per call");
  series.x_text = [by_flops](double x) {
    return by_flops ? QString::number(x, 'g', 2) : bytes_label(x);
  };
  series.x_is_bytes = !by_flops;
  series.y_text = seconds_text;
  series.expected = std::move(expected);
  for (const KernelPoint& point : curve.points) {
    const double x = by_flops ? static_cast<double>(point.flops.value)
                              : static_cast<double>(point.memory_traffic.value);
    series.points.emplace_back(x, point.time.value);
    series.texts.push_back(text_of(point));
  }
  for (std::size_t i = 0; i < series.expected.size(); ++i)
    series.texts[i] +=
        "\n" +
        CalibrationWords::tr("leave-one-out prediction: %1").arg(seconds_text(series.expected[i]));
  return series;
}

/// Empty if nothing is known.
QString residual_text(const PointSeries& series) {
  if (series.expected.empty()) return {};
  std::vector<double> missed;
  for (std::size_t i = 0; i < series.expected.size(); ++i)
    missed.push_back(std::abs(series.expected[i] / series.points[i].y() - 1));
  std::sort(missed.begin(), missed.end());
  return CalibrationWords::tr("○ leave-one-out prediction: error %1 (median), %2 (max)")
      .arg(percent_text(missed[missed.size() / 2]), percent_text(missed.back()));
}

}  // namespace

QString title_of(const CollectiveCurve& curve) {
  const QString text =
      CalibrationWords::tr("%1, %2 ranks").arg(qstring_of(name_of(curve.kind))).arg(curve.ranks);
  return curve.nodes == 1 ? text : text + CalibrationWords::tr(" on %1 nodes").arg(curve.nodes);
}

QString title_of(const KernelFamily& family) {
  // One routine can have two kinds: expert products are matrix products too.
  const QString kind =
      family.kind == KernelKind::kGroupedGemm ? qstring_of(name_of(family.kind)) + " " : QString();
  return kind + QString("%1 %2 %3%4")
                    .arg(qstring_of(name_of(family.routine)), qstring_of(name_of(family.phase)),
                         qstring_of(name_of(family.dtype)),
                         family.causal ? CalibrationWords::tr(", causal") : QString());
}

CurveSeries series_of(const CollectiveCurve& curve) {
  CurveSeries made;
  PointSeries& series = made.points;
  series.x_title = CalibrationWords::tr("total buffer size");
  series.y_title = CalibrationWords::tr("time per call");
  series.x_text = bytes_label;
  series.y_text = seconds_text;
  series.is_joined = true;
  series.x_is_bytes = true;
  for (const CurvePoint& point : curve.points) {
    series.points.emplace_back(static_cast<double>(point.bytes.value), point.time.value);
    series.texts.push_back(
        QString("%1: %2").arg(bytes_text(point.bytes), seconds_text(point.time.value)));
  }
  if (const std::optional<AlphaBeta> law = alpha_beta_of(curve)) {
    series.line = drawn(*law, curve.points);
    made.note = CalibrationWords::tr("dashed line: α + S / β with α = %1, β = %2")
                    .arg(seconds_text(law->alpha.value), rate_text(law->beta));
  }
  return made;
}

CurveSeries series_of(const KernelCurve& curve, bool without_outliers) {
  std::vector<double> expected = expected_without_itself(curve);
  const KernelCurve kept = kept_of(curve, expected);
  const std::size_t outliers = curve.points.size() - kept.points.size();
  CurveSeries made;
  if (without_outliers && outliers > 0)
    made.points = points_of(kept, expected_without_itself(kept));
  else
    made.points = points_of(curve, std::move(expected));
  made.note = residual_text(made.points);
  if (outliers > 0)
    made.note +=
        " · " +
        (without_outliers
             ? CalibrationWords::tr("%n outlier(s) hidden", nullptr, static_cast<int>(outliers))
             : CalibrationWords::tr("%n outlier(s)", nullptr, static_cast<int>(outliers)));
  return made;
}

std::vector<std::size_t> outliers_of(const std::vector<double>& values) {
  constexpr std::size_t kFewest = 4;
  constexpr double kFence = 1.5;
  if (values.size() < kFewest) return {};
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  // Linear interpolation between neighbors.
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
  };
  const double low = quantile(0.25), high = quantile(0.75);
  const double reach = kFence * (high - low);
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] < low - reach || values[i] > high + reach) found.push_back(i);
  return found;
}

}  // namespace meshwright::gui
