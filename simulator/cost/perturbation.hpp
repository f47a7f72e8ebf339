/// Hardware that is somewhat better or worse than its figures: for sensitivity analyses.
#pragma once

#include <memory>
#include <string_view>

#include "core/cluster/cluster.hpp"
#include "core/cost/calibration.hpp"
#include "core/cost/cost_model.hpp"

namespace meshwright {

enum class HardwareFigure : std::uint8_t {
  kLinkBandwidth,  ///< of all links, within and between nodes and to the host
  kPeakCompute,    ///< peak rate of matrix products and attention, in all formats
  kMemory          ///< capacity of the devices
};
std::string_view name_of(HardwareFigure figure);  ///< "link bandwidth", …

/// Multiplies one figure by `factor` > 0.
struct Perturbation {
  HardwareFigure figure = HardwareFigure::kLinkBandwidth;
  double factor = 1;
  friend bool operator==(const Perturbation&, const Perturbation&) = default;
};

/// Memory and peaks of all devices. Links are unchanged: see scaled_links().
Cluster perturbed(Cluster cluster, const Perturbation& perturbation);
/// Measured times of matrix products and attention, for peaks.
Calibration perturbed(Calibration calibration, const Perturbation& perturbation);

/// Prices every collective and message as one of bytes / factor. In all models of the form latency
/// + bytes / bandwidth, this is the same as a bandwidth that is `factor` times as high, including
/// the choice between algorithms. (Where a trainer copies what it communicates, the copies scale,
/// too.) Refers to `base`, the cost model for `cluster`.
std::unique_ptr<CostModel> scaled_links(const CostModel& base, const Cluster& cluster,
                                        double factor);

}  // namespace meshwright
