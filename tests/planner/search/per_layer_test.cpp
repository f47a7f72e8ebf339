#include "planner/search/per_layer.hpp"

#include <gtest/gtest.h>

#include <array>

#include "planner/search/refinement.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

/// Replicas on one node, each with all blocks.
SmallJob job_with_memory(std::int64_t bytes) {
  SmallJob small(small_dense_model(), Bytes(bytes),
                 {.gpus = 8, .global_batch = 64, .sequence_length = 2048});
  small.fixed.tensor = small.fixed.pipeline = small.fixed.context = 1;
  small.fixed.micro_batch = 8;
  return small;
}

RankedPlan evaluated(const SmallJob& small, const Strategy& strategy) {
  RankedPlan ranked;
  ranked.plan = complete_plan(strategy, small.model, small.cluster, *small.cost_model);
  ranked.evaluation = small.evaluate(ranked.plan);
  return ranked;
}

Strategy recomputing_all(const SmallJob& small) {
  Strategy s = strategy_of(small.fixed);
  s.degrees.data = 8;
  s.global_batch = small.goal.global_batch;
  s.sequence_length = small.goal.sequence_length;
  s.recompute.kind = RecomputeKind::kFull;
  return s;
}

/// The shortest step of all ways to recompute every block in one of three ways.
std::optional<Ticks> fastest_by_brute_force(const SmallJob& small, const Strategy& strategy) {
  constexpr int kBlocks = 6;
  const std::array<Recompute, 3> ways{
      Recompute{}, Recompute{RecomputeKind::kTorchSelective},
      Recompute{.kind = RecomputeKind::kModules, .modules = 1U << 1U}};
  std::optional<Ticks> fastest;
  for (int choice = 0; choice < 4096; ++choice) {  // two bits per block; 3: full
    Strategy s = strategy;
    for (int block = 0; block < kBlocks; ++block)
      if (const int way = (choice >> (2 * block)) & 3; way < 3)
        s.layer_options.recompute.push_back({block, block, ways[static_cast<std::size_t>(way)]});
    // Only the number of blocks of each kind matters here: one order of each.
    if (!std::ranges::is_sorted(s.layer_options.recompute, {},
                                [](const auto& of) { return of.value.kind; }))
      continue;
    const Evaluation evaluation = evaluated(small, s).evaluation;
    if (fits_in_memory(evaluation) && (!fastest || evaluation.step_time < *fastest))
      fastest = evaluation.step_time;
  }
  return fastest;
}

TEST(LayerOptionsOfAPlan, AreNearlyTheFastestOfAll) {
  int gained = 0;
  for (const std::int64_t gigabytes : {7, 9, 11, 13}) {
    const SmallJob small = job_with_memory(gigabytes * 1'000'000'000);
    const Strategy all = recomputing_all(small);
    const RankedPlan base = evaluated(small, all);
    const std::optional<Ticks> fastest = fastest_by_brute_force(small, all);
    if (!fastest) continue;
    const std::optional<RankedPlan> found = with_layer_options(base, small.job());
    ASSERT_EQ(found.has_value(), *fastest < base.evaluation.step_time) << gigabytes;
    if (!found) continue;
    ++gained;
    EXPECT_TRUE(check_plan(found->plan, small.model, small.cluster).empty());
    EXPECT_TRUE(fits_in_memory(found->evaluation));
    EXPECT_EQ(found->evaluation.step_time, small.evaluate(found->plan).step_time);
    const double slower = ratio(found->evaluation.step_time, *fastest) - 1;
    EXPECT_LT(slower, 0.01) << gigabytes << " GB: " << to_text(found->plan.strategy.layer_options);
  }
  EXPECT_GE(gained, 2);
}

// With plenty of memory no block is recomputed, and the plan is uniform.
TEST(LayerOptionsOfAPlan, AreNoneIfMemoryIsPlenty) {
  const SmallJob small = job_with_memory(kPlenty.value);
  const RankedPlan base = evaluated(small, recomputing_all(small));
  const std::optional<RankedPlan> found = with_layer_options(base, small.job());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->plan.strategy.recompute, Recompute{});
  EXPECT_TRUE(found->plan.strategy.layer_options.empty());
  EXPECT_FALSE(with_layer_options(*found, small.job()));
}

TEST(LayerOptionsOfAPlan, KeepFixedChoices) {
  SmallJob small = job_with_memory(kPlenty.value);
  small.fixed.recompute = Recompute{RecomputeKind::kFull};
  EXPECT_FALSE(with_layer_options(evaluated(small, recomputing_all(small)), small.job()));
}

// Parameters of some blocks stay gathered if all of them do not fit.
TEST(LayerOptionsOfAPlan, HoldParametersWhileMemoryLasts) {
  SmallJob small(small_dense_model(), kPlenty,
                 {.gpus = 64, .global_batch = 64, .sequence_length = 128});
  small.fixed.tensor = small.fixed.pipeline = small.fixed.context = 1;
  small.fixed.micro_batch = 1;
  small.fixed.recompute = Recompute{};
  Strategy s = strategy_of(small.fixed);
  s.degrees.data = 64;
  s.global_batch = small.goal.global_batch;
  s.sequence_length = small.goal.sequence_length;
  s.zero = 3;
  const RankedPlan base = evaluated(small, s);
  s.data_parallelism.reshard_after_forward = false;
  const RankedPlan all_held = evaluated(small, s);
  ASSERT_LT(all_held.evaluation.step_time, base.evaluation.step_time);
  const Bytes between =
      peak_memory(base.evaluation) +
      Bytes((peak_memory(all_held.evaluation) - peak_memory(base.evaluation)).value / 2);
  for (auto& [name, device] : small.cluster.devices) device.memory = between;
  const RankedPlan tight = evaluated(small, base.plan.strategy);
  const std::optional<RankedPlan> found = with_layer_options(tight, small.job());
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->plan.strategy.layer_options.reshard_after_forward.empty());
  EXPECT_LT(found->evaluation.step_time, base.evaluation.step_time);
  EXPECT_GT(found->evaluation.step_time, all_held.evaluation.step_time);
}

// Between devices without NVLink tensor parallelism is slow: as many blocks as fit share tokens.
TEST(LayerOptionsOfAPlan, ShareTokensWhileMemoryLasts) {
  SmallJob small(small_dense_model(), cluster_from_toml(find_cluster("pcie-8gpu")),
                 {.gpus = 8, .global_batch = 64, .sequence_length = 1024});
  small.fixed.recompute = Recompute{};
  Strategy s = strategy_of(small.fixed);
  s.degrees = {.data = 2, .tensor = 4};
  s.sequence_parallel = true;
  s.global_batch = small.goal.global_batch;
  s.sequence_length = small.goal.sequence_length;
  const RankedPlan base = evaluated(small, s);
  const std::optional<RankedPlan> all = with_layer_options(base, small.job());
  ASSERT_TRUE(all);
  EXPECT_EQ(to_text(all->plan.strategy.layer_options), "0-5:tp=1");
  const Bytes more = peak_memory(all->evaluation) - peak_memory(base.evaluation);
  for (auto& [name, device] : small.cluster.devices)
    device.memory = peak_memory(base.evaluation) + Bytes(more.value / 2);
  const std::optional<RankedPlan> some = with_layer_options(evaluated(small, s), small.job());
  ASSERT_TRUE(some);
  const LayerOptions& options = some->plan.strategy.layer_options;
  ASSERT_EQ(options.tensor.size(), 1U) << to_text(options);
  EXPECT_EQ(options.tensor.front().last, 5);
  EXPECT_GT(options.tensor.front().first, 0);
  EXPECT_LT(some->evaluation.step_time, base.evaluation.step_time);
  EXPECT_GT(some->evaluation.step_time, all->evaluation.step_time);
}

TEST(PerLayerSearch, SaysWhatItGains) {
  const SmallJob small = job_with_memory(9'000'000'000);
  const SearchResult uniform = small.search({.top = 3, .threads = 2});
  const SearchResult found = small.search({.top = 3, .threads = 2, .per_layer = true});
  ASSERT_FALSE(found.plans.empty());
  EXPECT_EQ(found.plans.size(), uniform.plans.size());
  EXPECT_EQ(uniform.certificate.uniform_step_time, std::nullopt);
  EXPECT_EQ(found.certificate.uniform_step_time, uniform.plans.front().evaluation.step_time);
  EXPECT_LE(found.plans.front().evaluation.step_time, uniform.plans.front().evaluation.step_time);
  for (const RankedPlan& row : found.plans) EXPECT_TRUE(fits_in_memory(row.evaluation));
}

}  // namespace
}  // namespace meshwright
