#include "simulator/cost/kernel_model_fit.hpp"

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// Points with a = 1 and c = 0 that the model counts like.
constexpr double kTrust = 5;

struct Line {
  double factor = 1;
  Seconds fixed;
};

/// Minimizes sum (a u_i + c v_i - 1)^2 + kTrust (a - 1)^2 with u = model / measured and
/// v = 1 / measured, over a, c >= 0. The sum is convex: if c would be negative, 0 is best.
Line fitted_line(const KernelCurve& curve, const CostModel& model) {
  double uu = kTrust, uv = 0, vv = 0, u_sum = kTrust, v_sum = 0;
  for (const KernelPoint& point : curve.points) {
    const double u = ratio(model.time_of(kernel_of(curve.family, point)), point.time);
    const double v = 1 / point.time.value;
    uu += u * u, uv += u * v, vv += v * v;
    u_sum += u, v_sum += v;
  }
  const double determinant = uu * vv - uv * uv;  // > 0, since kTrust > 0
  const double c = (v_sum * uu - u_sum * uv) / determinant;
  if (c <= 0) return {.factor = u_sum / uu, .fixed = {}};
  const double a = (u_sum * vv - v_sum * uv) / determinant;
  if (a <= 0) return {.factor = 0, .fixed = Seconds(v_sum / vv)};
  return {.factor = a, .fixed = Seconds(c)};
}

}  // namespace

KernelModelFit::KernelModelFit(const KernelCurve& curve, const CostModel& model)
    : kind_(curve.family.kind) {
  MW_CHECK(!curve.points.empty());
  const Line line = fitted_line(curve, model);
  factor_ = line.factor, fixed_ = line.fixed;
  for (const KernelPoint& point : curve.points) {
    const Seconds base = factor_ * model.time_of(kernel_of(curve.family, point)) + fixed_;
    if (!(base.value > 0)) continue;  // no work by the model
    corrections_.add(coordinates_of(kind_, point), ratio(point.time, base));
  }
}

Seconds KernelModelFit::time_of(const Kernel& kernel, const CostModel& model) const {
  return (factor_ * model.time_of(kernel) + fixed_) *
         corrections_.factor_at(coordinates_of(kind_, point_of(kernel)));
}

}  // namespace meshwright
