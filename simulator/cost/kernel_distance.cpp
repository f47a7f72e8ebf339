#include "simulator/cost/kernel_distance.hpp"

#include <algorithm>
#include <cmath>

namespace meshwright {
namespace {

constexpr double kSharing = 4;  // scale of attention's fifth axis

double doublings(double size) { return std::log2(std::max(size, 1.0)); }

}  // namespace

KernelCoordinates coordinates_of(KernelKind kind, const KernelPoint& point) {
  const auto bytes = static_cast<double>(point.memory_traffic.value);
  const bool is_product = kind == KernelKind::kGemm || kind == KernelKind::kGroupedGemm;
  if (!is_product && kind != KernelKind::kAttention) return {doublings(bytes)};
  const auto b = static_cast<double>(point.batch), m = static_cast<double>(point.m);
  const auto n = static_cast<double>(point.n), k = static_cast<double>(point.k);
  KernelCoordinates at{doublings(b), doublings(m), doublings(n), doublings(k)};
  if (kind == KernelKind::kAttention)
    at[4] = kSharing * (doublings(bytes) - doublings(b * (m + n) * k));
  return at;
}

double squared_distance(const KernelCoordinates& a, const KernelCoordinates& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

double weight_at(double squared_distance) {
  constexpr double kBlur = 0.5;
  const double blurred = squared_distance + kBlur * kBlur;
  return 1 / (blurred * std::sqrt(blurred));
}

void LocalCorrections::add(const KernelCoordinates& at, double factor) {
  known_.push_back({at, std::log(factor)});
}

double LocalCorrections::factor_at(const KernelCoordinates& here) const {
  double weights = weight_at(kCorrectionReach * kCorrectionReach), sum = 0;
  for (const Known& known : known_) {
    const double weight = weight_at(squared_distance(here, known.at));
    weights += weight;
    sum += weight * known.log_factor;
  }
  return std::exp(sum / weights);
}

}  // namespace meshwright
