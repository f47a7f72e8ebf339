// time_schedule(), which evaluates a schedule directly, against the engine on the task graph of a
// whole plan: two independent evaluations give every pass the same Ticks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "core/base/error.hpp"
#include "core/lowering/lower.hpp"
#include "core/schedule/timing.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

/// Kernels and collectives as on the device; every message costs the same.
class EqualMessages : public CostModel {
 public:
  EqualMessages(const Cluster& cluster, TransferCost message)
      : device_(make_device_cost_model(cluster)), message_(message) {}
  Seconds time_of(const Kernel& kernel) const override { return device_->time_of(kernel); }
  Seconds time_of(const Collective& c) const override { return device_->time_of(c); }
  TransferCost cost_of(const Transfer&) const override { return message_; }
  std::string provenance() const override { return "test"; }

 private:
  std::unique_ptr<CostModel> device_;
  TransferCost message_;
};

constexpr int kBlocks = 26;  // never a multiple of the stages below: earlier ones have one more

struct PipelineSize {
  int devices = 1, chunks = 1, microbatches = 1;
};

ScheduleRequest request_of(const PipelineSize& size) {
  ScheduleRequest request;
  request.devices = size.devices;
  request.chunks = size.chunks;
  request.microbatches = size.microbatches;
  return request;
}

Plan plan_of(const ScheduleRule& rule, const PipelineSize& size) {
  Strategy s;
  s.degrees = {.pipeline = size.devices, .chunks = size.chunks};
  s.global_batch = size.microbatches;
  s.sequence_length = 128;
  s.schedule = rule.name;
  const std::vector<int> parts = rule.placement(request_of(size)).part_of_stage;
  return even_plan(s, kBlocks, 1 + *std::max_element(parts.begin(), parts.end()));
}

struct EngineRun {
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  SimulatedTimes times;
  /// Passes of a device in the order of its stream.
  std::vector<std::size_t> passes_of(std::int32_t device) const {
    std::vector<std::size_t> tasks;
    for (std::size_t i = 0; i < graph.tasks.size(); ++i)
      if (graph.tasks[i].rank == device && graph.tasks[i].kind <= TaskKind::kBackwardWeight)
        tasks.push_back(i);
    return tasks;
  }
};

/// Pass times of every stage, and message times, in the graph. Without split backwards, I gets all
/// of B.
StageTimes stage_times_of(const EngineRun& run, std::size_t stages) {
  StageTimes times;
  for (auto* of_pass : {&times.forward, &times.backward_input, &times.backward_weight})
    of_pass->resize(stages);
  std::vector<Ticks> whole(stages);
  for (const Task& task : run.graph.tasks) {
    const WorkPrice& price = run.prices[task.work.index()];
    if (task.kind == TaskKind::kSend) {
      times.link_occupancy = price.duration;
      times.latency = price.duration + price.latency;
    }
    if (task.kind > TaskKind::kBackwardWeight) continue;
    const auto stage = static_cast<std::size_t>(task.stage);
    if (task.kind == TaskKind::kForward) times.forward[stage] = price.duration;
    if (task.kind == TaskKind::kBackward) whole[stage] = price.duration;
    if (task.kind == TaskKind::kBackwardInput) times.backward_input[stage] = price.duration;
    if (task.kind == TaskKind::kBackwardWeight) times.backward_weight[stage] = price.duration;
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (times.backward_input[s] == Ticks(0)) times.backward_input[s] = whole[s];
    if (whole[s] > Ticks(0)) {
      EXPECT_EQ(times.backward_input[s] + times.backward_weight[s], whole[s]);
    }
  }
  return times;
}

void expect_same_times(const EngineRun& run, const Schedule& schedule) {
  const ScheduleTiming timing =
      time_schedule(schedule, stage_times_of(run, schedule.placement.device_of_stage.size()));
  Ticks last;
  for (std::size_t d = 0; d < schedule.orders.size(); ++d) {
    const auto& order = schedule.orders[d];
    const auto tasks = run.passes_of(static_cast<std::int32_t>(d));
    ASSERT_EQ(tasks.size(), order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool second_of_pair = i > 0 && order[i - 1].overlaps_next;
      const Action& a = order[i];
      if (!second_of_pair) {
        ASSERT_EQ(run.times.start[tasks[i]], timing.starts[d][i]) << to_text({&a, 1});
      }
      if (!a.overlaps_next) {
        ASSERT_EQ(run.times.end[tasks[i]], timing.ends[d][i]) << to_text({&a, 1});
      }
      last = std::max(last, run.times.end[tasks[i]]);
    }
  }
  EXPECT_EQ(timing.makespan, last);
}

/// Compares one size of one schedule; false if its steps cannot be lowered, or have updates between
/// the passes, which time_schedule() knows nothing of
/// (tests/simulator/evaluate/without_flush_test.cpp).
bool compare(const ScheduleRule& rule, const PipelineSize& size, const TransferCost& message) {
  if (rule.updates != UpdateTime::kAfterFlush || rule.output_barriers > 0) return false;
  static const ModelGraph model = gpt({.blocks = kBlocks});
  static const Cluster cluster = cluster_of(1, 8);
  const Plan plan = plan_of(rule, size);
  EngineRun run;
  try {
    run.graph = lower(plan, model, cluster);
  } catch (const InputError&) {
    return false;
  }
  run.prices = price_works(run.graph.parts, run.graph.works, EqualMessages(cluster, message));
  simulate(run.graph, run.prices, run.times);
  expect_same_times(run, rule.generate(request_of(size)));
  return true;
}

/// Sizes that the schedule accepts.
std::vector<PipelineSize> sizes_of(const ScheduleRule& rule) {
  std::vector<PipelineSize> sizes;
  for (const int p : {1, 2, 3, 4, 6, 8})
    for (const int v : {1, 2, 3})
      for (const int m : {1, 3, 4, 8, 12, 16})
        if (const PipelineSize size{p, v, m}; !rule.problem(request_of(size)))
          sizes.push_back(size);
  return sizes;
}

constexpr TransferCost kLatencyOnly{.latency = Seconds(3e-6), .occupancy = Seconds(0)};
/// Longer than a pass: messages queue.
constexpr TransferCost kBusyLinks{.latency = Seconds(3e-6), .occupancy = Seconds(4e-4)};

// With two devices the engine sends activations and gradients between them on two streams, as in a
// ring; time_schedule() has a single link. They agree if messages have no occupancy.
TEST(DirectTiming, EqualsTheEngineOnEveryScheduleThatCanBeLowered) {
  std::set<std::string> not_compared;
  int compared = 0;
  for (const ScheduleRule& rule : schedule_rules())
    for (const PipelineSize& size : sizes_of(rule)) {
      SCOPED_TRACE(testing::Message() << rule.name << " p=" << size.devices << " v=" << size.chunks
                                      << " m=" << size.microbatches);
      if (!compare(rule, size, kLatencyOnly)) {
        not_compared.emplace(rule.name);
        continue;
      }
      if (size.devices != 2) compare(rule, size, kBusyLinks);
      ASSERT_FALSE(HasFailure());
      ++compared;
    }
  // Without a flush, and the split output layer, which has passes of its own.
  for (const std::string& name : not_compared)
    EXPECT_TRUE(name.starts_with("pipedream") || name.starts_with("vocab") ||
                name.starts_with("interlaced"))
        << name;
  EXPECT_GE(compared, 700);
}

/// Peak activation memory of a device of the graph between its passes.
Bytes most_kept(const EngineRun& run, std::int32_t device) {
  Bytes kept, most;
  for (const std::size_t i : run.passes_of(device)) {
    const Work& work = run.graph.works[run.graph.tasks[i].work.index()];
    kept += work.acquired[MemoryClass::kActivations];
    most = std::max(most, kept);
    kept -= work.released[MemoryClass::kActivations];
  }
  EXPECT_EQ(kept, Bytes(0));
  return most;
}

/// Activation memory that a device with one stage saves and frees per micro-batch.
struct KeptBytes {
  Bytes forward;             ///< saved by F
  Bytes input, input_freed;  ///< saved by I for W, and freed at the end of I
};
KeptBytes kept_bytes_of(const EngineRun& run, std::int32_t device) {
  KeptBytes kept;
  for (const std::size_t i : run.passes_of(device)) {
    const Work& work = run.graph.works[run.graph.tasks[i].work.index()];
    const Bytes acquired = work.acquired[MemoryClass::kActivations];
    if (work.kind == TaskKind::kForward) kept.forward = acquired;
    if (work.kind != TaskKind::kBackwardInput) continue;
    kept.input = acquired;
    kept.input_freed = work.released[MemoryClass::kActivations];
  }
  return kept;
}

// One stage per device: the peak in micro-batches times the memory that a forward saves, exactly if
// backwards are not split. An input gradient holds what it saves for W in addition to what it frees
// at its end, so the graph's peak may be higher by that.
TEST(DirectTiming, PeakActivationsAreThoseOfTheGraphInBytes) {
  const ModelGraph model = gpt({.blocks = kBlocks});
  const Cluster cluster = cluster_of(1, 8);
  for (const char* name : {"naive", "gpipe", "1f1b", "zb-h1", "zb-h2", "zb-1p", "zb-2p"})
    for (const int p : {1, 2, 4, 8}) {
      SCOPED_TRACE(testing::Message() << name << " p=" << p);
      const ScheduleRule* rule = find_schedule_rule(name);
      const PipelineSize size{.devices = p, .microbatches = 3 * p};
      EngineRun run;
      run.graph = lower(plan_of(*rule, size), model, cluster);
      const Schedule schedule = rule->generate(request_of(size));
      for (int d = 0; d < p; ++d) {
        const KeptBytes kept = kept_bytes_of(run, d);
        ASSERT_GT(kept.forward, Bytes(0));
        const double freed = ratio(kept.input_freed - kept.input, kept.forward);
        const double peak = peak_activations(schedule, freed)[static_cast<std::size_t>(d)] *
                            static_cast<double>(kept.forward.value);
        const auto most = static_cast<double>(most_kept(run, d).value);
        EXPECT_GE(most, peak - 1.0);
        EXPECT_LE(most, peak + static_cast<double>(kept.input.value) + 1.0);
      }
    }
}

}  // namespace
}  // namespace meshwright
