#include "executor/measure_kernels.hpp"

#include "core/lower.hpp"
#include "executor/launch.hpp"
#include "executor/train.hpp"
#include "executor/training_actions.hpp"

namespace meshwright {
namespace {

/// Prices that nobody asks for.
class NoCosts final : public CostModel {
 public:
  Seconds time_of(const Kernel&) const override { return {}; }
  Seconds time_of(const Collective&) const override { return {}; }
  TransferCost cost_of(const Transfer&) const override { return {}; }
  std::string provenance() const override { return "none"; }
};

/// One device for all dtypes, of which only its being one matters.
Cluster one_device() {
  DeviceModel device;
  device.name = "core";
  device.memory = Bytes(std::int64_t{1} << 50);
  device.peak.fill(FlopsPerSecond(1));
  device.memory_bandwidth = BytesPerSecond(1);
  NodeModel node;
  node.device = "core";
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

}  // namespace

std::vector<TimedKernels> run_probe(const KernelProbe& probe, const KernelTable& kernels,
                                    int counted_steps) {
  Plan plan;
  plan.strategy = probe.strategy;
  plan.blocks_per_stage = {block_count(probe.model)};
  const TaskGraph graph = lower(plan, probe.model, one_device(), {.ranks = RankSet::kAll});
  const RunnableGraph runnable(graph, plan, probe.model, NoCosts());
  const TokenText text = some_words(probe.model);
  std::vector<TimedKernels> timed;
  const auto body = [&](Communicator& communicator, RankProgress& progress) {
    TrainingActions actions(runnable, plan, probe.model, communicator, kernels, text, {}, progress);
    TimedActions watched(actions, work_time_of(kernels.backend));
    for (int step = 0; step <= counted_steps; ++step) {
      if (step == 1) watched.forget();
      watched.begin_step(step);
      RankClock clock(TimelineClock::kVirtual, std::chrono::steady_clock::now());
      run_step(runnable, communicator, watched, clock, progress);
    }
    timed = watched.take();
  };
  // One rank waits for nobody: however slow the machine is, it does not hang.
  const LaunchOptions patiently{.patience = std::chrono::minutes(10)};
  if (const auto failure = run_threads(1, body, patiently))
    throw std::runtime_error(failure->cause);
  return timed;
}

}  // namespace meshwright
