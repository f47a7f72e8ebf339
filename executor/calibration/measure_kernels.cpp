#include "executor/calibration/measure_kernels.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "core/lowering/lower.hpp"
#include "executor/runs/train.hpp"

namespace meshwright {
namespace {

/// Zero costs, which the virtual clock does not use for kernels.
class NoCosts final : public CostModel {
 public:
  Seconds time_of(const Kernel&) const override { return {}; }
  Seconds time_of(const Collective&) const override { return {}; }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  std::string provenance() const override { return "none"; }
};

/// A cluster with devices for all dtypes; only their number matters.
Cluster devices(int count) {
  DeviceModel device;
  device.name = "core";
  device.memory = Bytes(std::int64_t{1} << 50);
  device.peak.fill(FlopsPerSecond(1));
  device.memory_bandwidth = BytesPerSecond(1);
  NodeModel node;
  node.device = "core";
  node.device_count = count;
  Cluster cluster;
  cluster.devices["core"] = device;
  cluster.nodes["machine"] = node;
  cluster.groups = {{.node = "machine", .count = 1}};
  return cluster;
}

TokenText some_words(const ModelGraph& model) {
  constexpr std::int64_t kWords = 4096;
  const std::int64_t vocabulary = traits_of(model).vocabulary;
  TokenText text;
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < kWords; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth, MMIX
    text.words.push_back(
        static_cast<std::int32_t>(static_cast<std::int64_t>(state >> 33) % vocabulary));
  }
  return text;
}

bool is_pass(const Task& task) {
  return task.kind == TaskKind::kForward || task.kind == TaskKind::kBackward;
}

Ticks passes_of(const TrainingRun& run, const TaskGraph& graph) {
  Ticks sum;
  for (std::size_t step = 1; step < run.steps.size(); ++step)  // the first one is a warm-up
    for (std::size_t i = 0; i < graph.tasks.size(); ++i)
      if (is_pass(graph.tasks[i]))
        sum += run.steps[step].times.end[i] - run.steps[step].times.start[i];
  return sum;
}

Ticks time_in_passes(const std::vector<TimedKernels>& timed) {
  Ticks sum;
  for (const TimedKernels& group : timed)
    if (group.kernels.front().phase != Phase::kUpdate)
      for (const Ticks time : group.times) sum += time;
  return sum;
}

}  // namespace

MeasuredProbe run_probe(const KernelProbe& probe, const KernelTable& kernels, int counted_steps,
                        const DeviceTable* device) {
  Plan plan;
  plan.strategy = probe.strategy;
  plan.blocks_per_stage = {block_count(probe.model)};
  const Cluster cluster = devices(static_cast<int>(rank_count(probe.strategy.degrees)));
  MeasuredProbe measured;
  measured.graph = lower(plan, probe.model, cluster, {.ranks = RankSet::kAll, .programs = true});
  const TokenText text = some_words(probe.model);
  const NoCosts no_costs;
  const TrainingRun run = train({.plan = plan,
                                 .model = probe.model,
                                 .graph = measured.graph,
                                 .cost_model = no_costs,
                                 .text = text,
                                 .kernels = kernels,
                                 .device = device,
                                 .steps = counted_steps + 1,
                                 // A slow machine must not be taken for hung.
                                 .launch = {.watchdog_timeout = std::chrono::minutes(10)},
                                 .kernel_times = [&](std::vector<TimedKernels> of_rank) {
                                   std::ranges::move(of_rank, std::back_inserter(measured.kernels));
                                 }});
  if (run.failure) throw std::runtime_error(run.failure->cause);
  measured.waiting =
      to_seconds(passes_of(run, measured.graph) - time_in_passes(measured.kernels)) / counted_steps;
  return measured;
}

}  // namespace meshwright
