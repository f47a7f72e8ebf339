#include "simulator/cost/calibrated_cost_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/check.hpp"
#include "simulator/cost/kernel_curve_fit.hpp"
#include "simulator/cost/kernel_model_fit.hpp"
#include "simulator/cost/kernel_ratios.hpp"
#include "simulator/cost/kernel_time.hpp"
#include "simulator/variation/expected_maximum.hpp"

namespace meshwright {
namespace {

using Shape = std::tuple<CollectiveKind, int, int, int>;

Shape shape_of(const CollectiveCurve& curve) {
  return {curve.kind, curve.ranks, curve.nodes, curve.groups_per_node};
}
/// On one node, concurrent groups do not share a network port.
Shape shape_of(const Collective& collective) {
  const GroupShape& group = collective.group;
  return {collective.kind, group.ranks, group.nodes, group.nodes == 1 ? 1 : group.groups_per_node};
}

/// Every piece reads all queries and its share of the keys.
void take_keys_apart(Kernel& piece, const Kernel& whole) {
  piece.n /= whole.pieces;
  if (whole.m + whole.n == 0) return;
  const double share =
      static_cast<double>(piece.m + piece.n) / static_cast<double>(whole.m + whole.n);
  piece.memory_traffic =
      Bytes(static_cast<std::int64_t>(static_cast<double>(whole.memory_traffic.value) * share));
}

class CalibratedCostModel final : public CostModel {
 public:
  CalibratedCostModel(std::unique_ptr<CostModel> base, Calibration calibration)
      : base_(std::move(base)), calibration_(std::move(calibration)) {
    MW_CHECK(check_calibration(calibration_, "").empty());
    std::sort(calibration_.collectives.begin(), calibration_.collectives.end(),
              [](const auto& a, const auto& b) { return shape_of(a) < shape_of(b); });
    for (const KernelCurve& curve : calibration_.kernels) {
      if (calibration_.trainer)
        ratios_.emplace_back(curve.family, KernelRatios(curve));
      else if (calibration_.machine && calibration_.machine->gpu)
        model_fits_.emplace_back(curve.family, KernelModelFit(curve, *base_));
      else
        fits_.emplace_back(curve.family, KernelCurveFit(curve));
    }
    const auto by_family = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::sort(fits_.begin(), fits_.end(), by_family);
    std::sort(model_fits_.begin(), model_fits_.end(), by_family);
    std::sort(ratios_.begin(), ratios_.end(), by_family);
  }

  Seconds time_of(const Kernel& kernel) const override {
    if (kernel.on_host) return base_->time_of(kernel);
    const KernelFamily family = family_of(kernel);
    Kernel piece = piece_of(kernel);
    if (kernel.kind == KernelKind::kAttention) take_keys_apart(piece, kernel);
    Seconds time;
    if (const KernelCurveFit* fit = find_in(fits_, family))
      time = fit->time_of(piece);
    else if (const KernelModelFit* model_fit = find_in(model_fits_, family))
      time = model_fit->time_of(piece, *base_);
    else if (const KernelRatios* ratios = find_in(ratios_, family))
      time = ratios->time_of(piece, *base_);
    else
      return base_->time_of(kernel);
    return static_cast<double>(kernel.pieces) * time;
  }
  TransferCost cost_of(const Transfer& transfer) const override { return base_->cost_of(transfer); }
  TrainerMemory memory() const override { return base_->memory(); }
  Seconds wait_of(int ranks, Seconds work) const override {
    if (!calibration_.machine || calibration_.machine->noise.value <= 0) return {};
    return Seconds(expected_maximum(ranks) *
                   std::sqrt(calibration_.machine->noise.value * work.value));
  }

  Seconds time_of(const Collective& collective) const override {
    const CollectiveCurve* curve = curve_for(collective);
    if (curve == nullptr || collective.bytes.value <= 0) return base_->time_of(collective);
    const CurvePoint &first = curve->points.front(), &last = curve->points.back();
    if (collective.bytes < first.bytes) return scaled_base_time(collective, first);
    if (collective.bytes > last.bytes) return scaled_base_time(collective, last);
    return time_on_curve(*curve, collective.bytes);
  }

  HostTimes host_times() const override {
    HostTimes host = base_->host_times();
    if (!calibration_.trainer) return host;
    const MeasuredTrainer& measured = *calibration_.trainer;
    return {.per_kernel = measured.host_per_kernel,
            .per_collective = measured.host_per_collective,
            .per_layer_forward = measured.host_per_layer_forward,
            .per_layer_backward = measured.host_per_layer_backward,
            .per_pass = {},
            .per_step = measured.host_per_step,
            .messages_block = host.messages_block,
            .reads_counts = host.reads_counts};
  }
  /// Measured host times count the launches of Kernel, not those of the trainer's profile.
  double launches_of(const Kernel& kernel) const override {
    return calibration_.trainer ? CostModel::launches_of(kernel) : base_->launches_of(kernel);
  }

  std::string provenance() const override {
    std::string text = base_->provenance();
    const std::size_t families = calibration_.kernels.size();
    if (calibration_.collectives.empty() && families == 0) return text;
    if (families > 0)
      text = fmt::format("measured kernel families: {} (others: {})", families, text);
    if (!calibration_.collectives.empty())
      text += fmt::format("; measured collective curves: {}", calibration_.collectives.size());
    for (const auto& [key, value] : calibration_.provenance)
      text += fmt::format(", {}: {}", key, value);
    return text;
  }

  std::string validation() const override {
    const bool kernels = !calibration_.kernels.empty();
    const bool collectives = !calibration_.collectives.empty();
    if (!kernels && !collectives) return base_->validation();
    const auto device = calibration_.provenance.find("device");
    return fmt::format("{} calibrated{}{}",
                       !kernels       ? "collectives"
                       : !collectives ? "kernels"
                                      : "kernels and collectives",
                       device == calibration_.provenance.end() ? "" : " on " + device->second,
                       kernels ? "" : ", kernel times unvalidated");
  }

 private:
  template <class Model>
  static const Model* find_in(const std::vector<std::pair<KernelFamily, Model>>& models,
                              const KernelFamily& family) {
    const auto found = std::lower_bound(models.begin(), models.end(), family,
                                        [](const auto& f, const auto& s) { return f.first < s; });
    return found != models.end() && found->first == family ? &found->second : nullptr;
  }
  const CollectiveCurve* curve_for(const Collective& collective) const {
    const Shape shape = shape_of(collective);
    const auto& curves = calibration_.collectives;
    const auto found =
        std::lower_bound(curves.begin(), curves.end(), shape,
                         [](const CollectiveCurve& c, const Shape& s) { return shape_of(c) < s; });
    return found != curves.end() && shape_of(*found) == shape ? &*found : nullptr;
  }
  Seconds scaled_base_time(Collective collective, const CurvePoint& end) const {
    const Seconds here = base_->time_of(collective);
    collective.bytes = end.bytes;
    const Seconds there = base_->time_of(collective);
    return there.value > 0 ? here * ratio(end.time, there) : here;
  }

  std::unique_ptr<CostModel> base_;
  Calibration calibration_;  ///< curves by shape
  // By family: of CPU cores, of a GPU, of a training job.
  std::vector<std::pair<KernelFamily, KernelCurveFit>> fits_;
  std::vector<std::pair<KernelFamily, KernelModelFit>> model_fits_;
  std::vector<std::pair<KernelFamily, KernelRatios>> ratios_;
};

}  // namespace

std::unique_ptr<CostModel> make_calibrated_cost_model(std::unique_ptr<CostModel> base,
                                                      Calibration calibration) {
  MW_CHECK(base != nullptr);
  return std::make_unique<CalibratedCostModel>(std::move(base), std::move(calibration));
}

}  // namespace meshwright
