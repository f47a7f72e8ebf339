#include "cli/calibration/measured_noise.hpp"

#include <memory>
#include <utility>

#include "core/base/check.hpp"
#include "models/load/this_machine.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright {
namespace {

/// Sum over the forward and backward passes of all ranks.
Seconds predicted_waiting(const TaskGraph& graph, const CostModel& costs) {
  Ticks sum;
  for (const Task& task : graph.tasks) {
    if (task.kind != TaskKind::kForward && task.kind != TaskKind::kBackward) continue;
    for (const WorkPartUse& use : graph.works[task.work.index()].parts) {
      const WorkPart& part = graph.parts[static_cast<std::size_t>(use.part)];
      for (const Ticks wait : waits_of_steps(part, price_steps(part, costs), costs))
        sum += wait * std::int64_t{use.count};
    }
  }
  return to_seconds(sum);
}

}  // namespace

Seconds noise_of(Calibration calibration, const std::vector<WaitingProbe>& probes) {
  MW_CHECK(calibration.machine.has_value());
  constexpr Seconds kUnit(1e-6);
  calibration.machine->noise = kUnit;
  const Cluster cluster = cluster_of(calibration);
  const std::unique_ptr<CostModel> costs =
      make_calibrated_cost_model(make_device_cost_model(cluster), std::move(calibration));
  Seconds measured, of_unit;
  for (const WaitingProbe& one : probes) {
    measured += one.waiting;
    of_unit += predicted_waiting(one.graph, *costs);
  }
  if (of_unit.value <= 0 || measured.value <= 0) return {};
  const double more = ratio(measured, of_unit);
  return kUnit * (more * more);
}

}  // namespace meshwright
