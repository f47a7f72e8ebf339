#include "simulator/cost/kernel_ratios.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/check.hpp"
#include "simulator/cost/kernel_distance.hpp"

namespace meshwright {
namespace {

bool has_dimensions(KernelKind kind) {
  return kind == KernelKind::kGemm || kind == KernelKind::kGroupedGemm ||
         kind == KernelKind::kAttention;
}

/// Sizes that tell apart the kernels of a family.
using RatioSizes = std::array<std::int64_t, 4>;
RatioSizes sizes_of(KernelKind kind, const KernelPoint& point) {
  if (has_dimensions(kind)) return {point.batch, point.m, point.n, point.k};
  if (kind == KernelKind::kOptimizer && point.m > 0) return {point.m, 0, 0, 0};
  return {point.memory_traffic.value, 0, 0, 0};
}

double squared_distance(const RatioSizes& a, const RatioSizes& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double doublings = std::log2(static_cast<double>(std::max<std::int64_t>(a[i], 1))) -
                             std::log2(static_cast<double>(std::max<std::int64_t>(b[i], 1)));
    sum += doublings * doublings;
  }
  return sum;
}

}  // namespace

KernelRatios::KernelRatios(KernelCurve curve) : curve_(std::move(curve)) {
  MW_CHECK(!curve_.points.empty());
}

Seconds KernelRatios::time_of(const Kernel& kernel, const CostModel& base) const {
  const KernelKind kind = curve_.family.kind;
  const RatioSizes here = sizes_of(kind, point_of(kernel));
  for (const KernelPoint& point : curve_.points)
    if (sizes_of(kind, point) == here) return point.time;
  double total = 0, weights = 0, sum = 0;
  int count = 0;
  for (const KernelPoint& point : curve_.points) {
    const Seconds predicted = base.time_of(kernel_of(curve_.family, point));
    if (!(predicted.value > 0)) continue;  // no work, so no ratio
    const double log_ratio = std::log(point.time.value / predicted.value);
    const double weight = weight_at(squared_distance(here, sizes_of(kind, point)));
    total += log_ratio;
    ++count;
    weights += weight;
    sum += weight * log_ratio;
  }
  const Seconds predicted = base.time_of(kernel);
  if (count == 0) return predicted;
  const double mean_weight = weight_at(kCorrectionReach * kCorrectionReach);
  return predicted * std::exp((sum + mean_weight * total / count) / (weights + mean_weight));
}

}  // namespace meshwright
