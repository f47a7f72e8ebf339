// The engine on the task graphs of whole plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "core/lowering/lower.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr int kBlocks = 8;

struct Case {
  ParallelDegrees degrees;
  int zero = 0;
  int microbatches = 4;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {.degrees = {.pipeline = 4}},
      {.degrees = {.data = 2, .pipeline = 2, .tensor = 2}},
      {.degrees = {.data = 2, .pipeline = 2, .tensor = 2}, .zero = 1, .microbatches = 6},
      {.degrees = {.data = 4, .pipeline = 2, .chunks = 2}, .zero = 1},
      {.degrees = {.data = 8}, .microbatches = 1},
      {.degrees = {.data = 2, .pipeline = 2, .tensor = 2}, .zero = 2},
      {.degrees = {.data = 4, .pipeline = 2, .chunks = 2}, .zero = 3},
      {.degrees = {.pipeline = 2, .tensor = 4}, .microbatches = 1},
  };
  return all;
}

Plan plan_of(const Case& c) {
  Strategy s;
  s.degrees = c.degrees;
  s.global_batch = std::int64_t{c.degrees.data} * c.microbatches;
  s.sequence_length = 128;
  s.schedule = c.degrees.chunks > 1 ? "interleaved-1f1b" : "1f1b";
  s.zero = c.zero;
  return even_plan(s, kBlocks, static_cast<int>(stage_count(c.degrees)));
}

ModelGraph model_of_cases() { return gpt({.blocks = kBlocks, .tied = true}); }

struct Simulated {
  TaskGraph graph;
  std::vector<WorkPrice> prices;
  SimulatedTimes times;
};

Simulated simulated(const Case& c, const Cluster& cluster, RankSet ranks) {
  const ModelGraph model = model_of_cases();
  Simulated result;
  result.graph = lower(plan_of(c), model, cluster, {.ranks = ranks});
  result.prices =
      price_works(result.graph.parts, result.graph.works, *make_device_cost_model(cluster));
  simulate(result.graph, result.prices, result.times);
  return result;
}

Evaluation evaluated(const Case& c, const Simulated& s) {
  JobFacts job;
  job.model_flops_per_step = model_flops_per_step(model_of_cases(), plan_of(c).strategy);
  job.job_ranks = rank_count(c.degrees);
  return evaluate(s.graph, s.prices, s.times, job);
}

// Each representative has exactly the step, breakdown and peak memory of the ranks it represents.
TEST(LoweredPlan, IsTheSameForRepresentativesAndForAllRanks) {
  const Cluster cluster = cluster_of(2, 4);
  for (std::size_t i = 0; i < cases().size(); ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    const Case& c = cases()[i];
    const Evaluation folded = evaluated(c, simulated(c, cluster, RankSet::kRepresentatives));
    const Evaluation all = evaluated(c, simulated(c, cluster, RankSet::kAll));
    EXPECT_EQ(folded.step_time, all.step_time);
    EXPECT_DOUBLE_EQ(folded.hardware_flops_per_gpu.value, all.hardware_flops_per_gpu.value);
    const std::size_t copies = all.ranks.size() / folded.ranks.size();
    for (std::size_t r = 0; r < all.ranks.size(); ++r) {
      EXPECT_EQ(all.ranks[r], folded.ranks[r / copies]) << "rank " << r;
      EXPECT_EQ(all.peak_memory[r], folded.peak_memory[r / copies]) << "rank " << r;
    }
  }
}

// Recomputation and redundant work on several ranks only add to the model's flops.
TEST(LoweredPlan, DoesAllTheArithmeticOfTheModel) {
  const Cluster cluster = cluster_of(2, 4);
  for (const Case& c : cases()) {
    const Evaluation e = evaluated(c, simulated(c, cluster, RankSet::kRepresentatives));
    EXPECT_GE(e.hardware_flops_per_gpu, e.model_flops_per_gpu);
    EXPECT_LT(e.hardware_flops_per_gpu.value, 1.5 * e.model_flops_per_gpu.value);
  }
}

// The norm of all gradients is a barrier: no optimizer starts before the last backward has ended.
TEST(LoweredPlan, UpdatesNothingBeforeTheLastBackward) {
  const Cluster cluster = cluster_of(2, 4);
  for (const Case& c : cases()) {
    const Simulated s = simulated(c, cluster, RankSet::kAll);
    Ticks last_backward, first_update = Ticks::max();
    for (std::size_t i = 0; i < s.graph.tasks.size(); ++i) {
      if (s.graph.tasks[i].kind == TaskKind::kBackward)
        last_backward = std::max(last_backward, s.times.end[i]);
      if (s.graph.tasks[i].kind == TaskKind::kOptimizer)
        first_update = std::min(first_update, s.times.start[i]);
    }
    EXPECT_GE(first_update, last_backward);
  }
}

TEST(LoweredPlan, HasASoundTimeline) {
  const Cluster cluster = cluster_of(2, 4);
  for (const Case& c : cases()) {
    const Simulated s = simulated(c, cluster, RankSet::kAll);
    EXPECT_EQ(check_timeline(timeline_of(s.graph, s.times)), std::vector<std::string>{});
  }
}

// With a thousand times the ports, and prices of the original cluster, nothing contends.
TEST(LoweredPlan, IsTheSameWithContentionOnWideLinks) {
  const Cluster cluster = cluster_of(2, 4);
  Cluster wide = cluster;
  for (auto& [name, node] : wide.nodes) {
    node.local.bandwidth = node.local.bandwidth * 1000.0;
    node.port_bandwidth = node.port_bandwidth * 1000.0;
  }
  const LinkNetwork network(wide, 8);
  for (const Case& c : cases()) {
    const Simulated s = simulated(c, cluster, RankSet::kAll);
    EXPECT_EQ(simulate_with_contention(s.graph, s.prices, network), s.times);
  }
}

// The allocator holds an eighth more than the tensors, but at most what the device has left: slack
// never decides whether a plan fits.
TEST(AllocatorSlack, IsReservedWhereTheDeviceHasRoom) {
  const Case& c = cases()[0];
  const Cluster cluster = cluster_of(1, 4);
  const TaskGraph graph =
      lower(plan_of(c), model_of_cases(), cluster, {.memory = {.allocator_slack = 0.125}});
  const auto prices = price_works(graph.parts, graph.works, *make_device_cost_model(cluster));
  JobFacts job;
  const auto with_capacity = [&](Bytes capacity) {
    job.memory_capacity = capacity;
    return evaluate(graph, prices, simulate(graph, prices), job);
  };
  const Evaluation roomy = with_capacity(Bytes(std::int64_t{80} << 30));
  const MemoryAmounts held = peak_memory_by_rank(graph)[0];
  const Bytes allocated = total(held) - held[MemoryClass::kReserved];
  EXPECT_EQ(allocated_bytes(roomy.peak_memory[0]), allocated);
  EXPECT_EQ(roomy.allocator_slack[0], Bytes(allocated.value / 8));
  EXPECT_EQ(total(roomy.peak_memory[0]), total(held) + Bytes(allocated.value / 8));
  EXPECT_GE(peak_reserved_memory(roomy), allocated + Bytes(allocated.value / 8));
  EXPECT_LT(peak_reserved_memory(roomy), peak_memory(roomy));

  const Bytes least = peak_memory(with_capacity(Bytes(0)));
  const Evaluation tight = with_capacity(least + Bytes(1'000));
  EXPECT_TRUE(fits_in_memory(tight));
  EXPECT_EQ(peak_memory(tight), least + Bytes(1'000));
  EXPECT_FALSE(fits_in_memory(with_capacity(least - Bytes(1))));
}

}  // namespace
}  // namespace meshwright
