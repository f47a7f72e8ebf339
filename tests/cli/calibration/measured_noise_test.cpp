#include "cli/calibration/measured_noise.hpp"

#include <gtest/gtest.h>

#include "cli/calibration/calibration_probes.hpp"
#include "core/lowering/lower.hpp"
#include "models/load/this_machine.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "tests/core/cost/two_core_machine.hpp"

namespace meshwright {
namespace {

Calibration machine_without_noise() {
  Calibration calibration;
  calibration.machine = two_core_machine();
  calibration.machine->peak[Dtype::kBf16] = FlopsPerSecond(5e10);
  return calibration;
}

/// Passes of a probe, and by how much they are longer with the noise than without.
WaitingProbe passes_with(Seconds noise, const ProbeShape& shape) {
  Calibration calibration = machine_without_noise();
  const Cluster cluster = cluster_of(calibration);
  const KernelProbe probe = probe_of(shape);
  Plan plan;
  plan.strategy = probe.strategy;
  plan.blocks_per_stage = {block_count(probe.model)};
  WaitingProbe passes;
  passes.graph = lower(plan, probe.model, cluster, {.ranks = RankSet::kAll, .programs = true});
  const auto all = [&] {
    const auto costs = make_calibrated_cost_model(make_device_cost_model(cluster), calibration);
    const auto prices = price_works(passes.graph.parts, passes.graph.works, *costs);
    Ticks sum;
    for (const Task& task : passes.graph.tasks)
      if (task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward)
        sum += prices[task.work.index()].duration;
    return sum;
  };
  const Ticks without = all();
  calibration.machine->noise = noise;
  passes.waiting = to_seconds(all() - without);
  return passes;
}

TEST(MeasuredNoise, IsWhatMadeRanksWait) {
  constexpr Seconds kNoise(1.5e-5);
  const std::vector<WaitingProbe> passes{
      passes_with(kNoise, {.hidden = 256, .cut = 2}),
      passes_with(kNoise, {.kind = ProbeKind::kLlama, .hidden = 128, .cut = 4})};
  EXPECT_GT(passes[0].waiting.value, 0);
  EXPECT_NEAR(noise_of(machine_without_noise(), passes).value / kNoise.value, 1, 1e-3);
}

// Ranks that were done at once, or none that meet.
TEST(MeasuredNoise, IsNoneWhereNobodyWaited) {
  EXPECT_EQ(noise_of(machine_without_noise(), {}), Seconds(0));
  std::vector<WaitingProbe> passes{passes_with(Seconds(0), {.hidden = 256, .cut = 2})};
  EXPECT_EQ(noise_of(machine_without_noise(), passes), Seconds(0));
  passes[0].waiting = Seconds(-1e-6);  // by the stop watches
  EXPECT_EQ(noise_of(machine_without_noise(), passes), Seconds(0));
}

}  // namespace
}  // namespace meshwright
