#include "gui/calibration_series.hpp"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "gui/number_text.hpp"
#include "simulator/kernel_curve_fit.hpp"

namespace meshwright::gui {
namespace {

class Words {
  Q_DECLARE_TR_FUNCTIONS(meshwright::gui::CalibrationScreen)
};

QString from(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString seconds_text(double seconds) { return time_text(to_ticks(Seconds(seconds))); }

/// The line, from the first size to the last one, at steps that look smooth on logarithmic axes.
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

/// What all other points say of each one: how far the curve can be trusted between its points.
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
  return Words::tr("batch %1, %2 × %3 × %4: %5, spread %6 of %7")
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
  series.x_title = by_flops ? Words::tr("arithmetic of one call, FLOP")
                            : Words::tr("memory traffic of one call");
  series.y_title = Words::tr("time of one call");
  series.x_text = [by_flops](double x) {
    return by_flops ? QString::number(x, 'g', 2) : bytes_text(Bytes(static_cast<std::int64_t>(x)));
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
        "\n" + Words::tr("the other points alone say %1").arg(seconds_text(series.expected[i]));
  return series;
}

/// Empty if nothing is known.
QString residual_text(const PointSeries& series) {
  if (series.expected.empty()) return {};
  std::vector<double> missed;
  for (std::size_t i = 0; i < series.expected.size(); ++i)
    missed.push_back(std::abs(series.expected[i] / series.points[i].y() - 1));
  std::sort(missed.begin(), missed.end());
  return Words::tr("○ what all other points say of each one: missed by %1 (median), %2 at most")
      .arg(percent_text(missed[missed.size() / 2]), percent_text(missed.back()));
}

}  // namespace

QString title_of(const CollectiveCurve& curve) {
  const QString text = Words::tr("%1, %2 ranks").arg(from(name_of(curve.kind))).arg(curve.ranks);
  return curve.nodes == 1 ? text : text + Words::tr(" on %1 nodes").arg(curve.nodes);
}

QString title_of(const KernelFamily& family) {
  // A routine may be of two kinds: the products of experts are products too.
  const QString kind =
      family.kind == KernelKind::kGroupedGemm ? from(name_of(family.kind)) + " " : QString();
  return kind + QString("%1 %2 %3%4")
                    .arg(from(name_of(family.routine)), from(name_of(family.phase)),
                         from(name_of(family.dtype)),
                         family.causal ? Words::tr(", causal") : QString());
}

CurveSeries series_of(const CollectiveCurve& curve) {
  CurveSeries made;
  PointSeries& series = made.points;
  series.x_title = Words::tr("size of the whole buffer");
  series.y_title = Words::tr("time of one call");
  series.x_text = [](double bytes) { return bytes_text(Bytes(static_cast<std::int64_t>(bytes))); };
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
    made.note = Words::tr("dashed: α + S / β, α = %1, β = %2")
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
        " · " + (without_outliers
                     ? Words::tr("%n outlier(s) left out", nullptr, static_cast<int>(outliers))
                     : Words::tr("%n outlier(s)", nullptr, static_cast<int>(outliers)));
  return made;
}

std::vector<std::size_t> outliers_of(const std::vector<double>& values) {
  constexpr std::size_t kFewest = 4;
  constexpr double kFence = 1.5;
  if (values.size() < kFewest) return {};
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  // Straight between neighbours.
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
