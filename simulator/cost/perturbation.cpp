#include "simulator/cost/perturbation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/value_named.hpp"
#include "simulator/cost/forwarded_costs.hpp"

namespace meshwright {
namespace {

Bytes scaled(Bytes bytes, double factor) {
  return Bytes(std::llround(static_cast<double>(bytes.value) * factor));
}

/// Bytes that take on the base model's links as long as `bytes` on the scaled ones. No message
/// disappears.
Bytes equivalent(Bytes bytes, double factor) {
  return bytes > Bytes(0) ? std::max(Bytes(1), scaled(bytes, 1 / factor)) : bytes;
}

class ScaledLinks final : public ForwardedCosts {
 public:
  ScaledLinks(const CostModel& base, double factor, std::size_t node_kinds)
      : ForwardedCosts(base), factor_(factor) {
    MW_CHECK(factor > 0);
    for (std::size_t kind = 0; kind < node_kinds; ++kind) {
      const CostModel& on_kind = base.on_nodes(static_cast<std::int32_t>(kind));
      if (&on_kind == &base) break;  // the same for all nodes
      kinds_.push_back(std::make_unique<ScaledLinks>(on_kind, factor, 0));
    }
  }

  using ForwardedCosts::time_of;
  Seconds time_of(const Collective& collective) const override {
    Collective shorter = collective;
    shorter.bytes = equivalent(collective.bytes, factor_);
    shorter.sent_across_nodes = equivalent(collective.sent_across_nodes, factor_);
    return base_.time_of(shorter);
  }
  TransferCost cost_of(const Transfer& transfer) const override {
    Transfer shorter = transfer;
    shorter.bytes = equivalent(transfer.bytes, factor_);
    return base_.cost_of(shorter);
  }
  const CostModel& on_nodes(std::int32_t node_kind) const override {
    const auto kind = static_cast<std::size_t>(node_kind);
    if (node_kind < 0 || kind >= kinds_.size()) return *this;
    return *kinds_[kind];
  }

 private:
  double factor_;
  std::vector<std::unique_ptr<CostModel>> kinds_;  ///< by node kind; empty: all alike
};

}  // namespace

std::string_view name_of(HardwareFigure figure) {
  constexpr std::array<std::string_view, 3> kNames{"link bandwidth", "peak compute", "memory"};
  return entry_of(kNames, figure);
}

Cluster perturbed(Cluster cluster, const Perturbation& perturbation) {
  MW_CHECK(perturbation.factor > 0);
  for (auto& [name, device] : cluster.devices) {
    if (perturbation.figure == HardwareFigure::kMemory)
      device.memory = scaled(device.memory, perturbation.factor);
    if (perturbation.figure != HardwareFigure::kPeakCompute) continue;
    for (std::optional<FlopsPerSecond>& peak : device.peak)
      if (peak) peak = *peak * perturbation.factor;
  }
  return cluster;
}

Calibration perturbed(Calibration calibration, const Perturbation& perturbation) {
  if (perturbation.figure != HardwareFigure::kPeakCompute) return calibration;
  for (KernelCurve& curve : calibration.kernels)
    if (curve.family.kind != KernelKind::kMemoryBound &&
        curve.family.kind != KernelKind::kOptimizer)
      for (KernelPoint& point : curve.points) point.time = point.time / perturbation.factor;
  return calibration;
}

std::unique_ptr<CostModel> scaled_links(const CostModel& base, const Cluster& cluster,
                                        double factor) {
  return std::make_unique<ScaledLinks>(base, factor, cluster.groups.size());
}

}  // namespace meshwright
