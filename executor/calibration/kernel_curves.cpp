#include "executor/calibration/kernel_curves.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace meshwright {
namespace {

constexpr FlopsPerSecond kRoughFlops(20e9);
constexpr BytesPerSecond kRoughBytes(5e9);

Seconds rough_time(const Kernel& kernel) {
  return kernel.flops / kRoughFlops + kernel.memory_traffic / kRoughBytes;
}

using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
Shape shape_of(const Kernel& k) { return {k.batch, k.m, k.n, k.k, k.memory_traffic.value}; }

struct Samples {
  Kernel kernel;
  std::vector<Seconds> times;
};

double quantile(const std::vector<Seconds>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below].value * (1 - part) + sorted[above].value * part;
}

/// A step is a sum of calls, so the mean matters, not the median, which is lower for skewed times.
/// Outliers caused by other programs are clipped.
Seconds mean_of(const std::vector<Seconds>& sorted) {
  constexpr double kMost = 3;  // times the median
  const double most = kMost * quantile(sorted, 0.5);
  double sum = 0;
  for (const Seconds time : sorted) sum += std::min(time.value, most);
  return Seconds(sum / static_cast<double>(sorted.size()));
}

KernelPoint point_from(Samples samples) {
  std::sort(samples.times.begin(), samples.times.end());
  KernelPoint point = point_of(samples.kernel);
  point.time = mean_of(samples.times);
  const double range = quantile(samples.times, 0.75) - quantile(samples.times, 0.25);
  point.spread = range / quantile(samples.times, 0.5);
  point.samples = static_cast<int>(samples.times.size());
  return point;
}

}  // namespace

std::vector<KernelCurve> kernel_curves(const std::vector<TimedKernels>& timed) {
  std::map<KernelFamily, std::map<Shape, Samples>> families;
  for (const TimedKernels& group : timed) {
    Seconds whole;
    for (const Kernel& kernel : group.kernels) whole += rough_time(kernel);
    for (const Kernel& kernel : group.kernels) {
      const double share = whole.value > 0 ? ratio(rough_time(kernel), whole)
                                           : 1.0 / static_cast<double>(group.kernels.size());
      Samples& samples = families[family_of(kernel)][shape_of(kernel)];
      samples.kernel = kernel;
      for (const Ticks time : group.times)
        if (time.value > 0) samples.times.push_back(to_seconds(time) * share);
    }
  }
  std::vector<KernelCurve> curves;
  for (auto& [family, shapes] : families) {
    KernelCurve curve{.family = family, .points = {}};
    for (auto& [shape, samples] : shapes)
      if (!samples.times.empty()) curve.points.push_back(point_from(std::move(samples)));
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace meshwright
