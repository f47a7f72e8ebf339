#include "core/checks/check_model_parallelism.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using namespace testing_models;

constexpr int kBlocks = 4;

/// "where: what" of the only problem; empty if there is none.
std::string finding(ParallelDegrees degrees, const ModelGraph& model,
                    const std::function<void(Plan&)>& change) {
  Plan plan = plan_of(strategy_of(degrees, 4), kBlocks);
  change(plan);
  const std::vector<Diagnostic> found = check_plan(plan, model, cluster_of(4, 4));
  EXPECT_LE(found.size(), 1u);
  if (found.empty()) return "";
  EXPECT_FALSE(found.front().hint.empty());
  return found.front().where + ": " + found.front().what;
}

std::string with_experts(ParallelDegrees degrees, const ExpertRouting& routing) {
  return finding(degrees, mixture(kBlocks),
                 [&](Plan& p) { p.strategy.model_parallelism.routing = routing; });
}

TEST(CheckModelParallelism, RequiresNoMoreExpertRanksThanExperts) {
  EXPECT_EQ(with_experts({.data = 8, .expert = 8}, {}),
            "--ep: expert-parallel size 8 exceeds the 4 experts of 'tiny-mixture'");
  EXPECT_EQ(with_experts({.data = 12, .expert = 3}, {}),
            "--ep: expert-parallel size 3 does not divide the 4 experts of 'tiny-mixture'");
  EXPECT_EQ(with_experts({.data = 8, .expert = 4, .expert_tensor = 2}, {}), "");
}

// 4 experts, 2 per token: an expert cannot get more than twice the mean.
TEST(CheckModelParallelism, RejectsInvalidRouting) {
  const ParallelDegrees degrees{.data = 4, .expert = 4};
  EXPECT_EQ(with_experts(degrees, {.imbalance = 2}), "");
  EXPECT_EQ(with_experts(degrees, {.imbalance = 2.5}),
            "--expert-imbalance: must be between 1 and 2, got 2.5");
  EXPECT_EQ(with_experts(degrees, {.imbalance = 0.5}),
            "--expert-imbalance: must be between 1 and 2, got 0.5");
  EXPECT_EQ(with_experts(degrees, {.capacity = 3}),
            "--expert-capacity: must be between 0 and 2, got 3");
  EXPECT_EQ(with_experts(degrees, {.capacity = 1.5, .imbalance = 1.5}),
            "--expert-imbalance: cannot be combined with '--expert-capacity'");
  EXPECT_THAT(finding({}, gpt({.blocks = kBlocks}),
                      [](Plan& p) { p.strategy.model_parallelism.routing.capacity = 1; }),
              HasSubstr("--expert-capacity: 'tiny-gpt' has no experts"));
  EXPECT_THAT(finding({}, gpt({.blocks = kBlocks}),
                      [](Plan& p) { p.strategy.model_parallelism.routing.imbalance = 2; }),
              HasSubstr("--expert-imbalance: 'tiny-gpt' has no experts"));
}

TEST(CheckModelParallelism, RequiresAScheduleWithPairsForExpertOverlap) {
  const ParallelDegrees degrees{.data = 4, .expert = 4};
  EXPECT_EQ(with_experts(degrees, {.overlap = true}), "");
  EXPECT_EQ(with_experts({.data = 4, .pipeline = 2, .expert = 4}, {.overlap = true}),
            "--expert-overlap: requires schedule 1f1b with one pipeline rank, or interleaved-1f1b, "
            "got 1f1b with --pp 2");
}

// With one expert per rank, a limit of one node is too small for 2 experts per token only if a node
// has a single rank.
TEST(CheckModelParallelism, RequiresEnoughExpertsWithinTheNodeLimit) {
  const ModelGraph model = mixture(kBlocks, 64, 8);
  const auto limit = [](Plan& p) { p.strategy.model_parallelism.routing.node_limit = 1; };
  EXPECT_EQ(finding({.data = 8, .expert = 8}, model, limit), "");
  Plan plan = plan_of(strategy_of({.data = 8, .expert = 8}, 4), kBlocks);
  limit(plan);
  const auto found = check_plan(plan, model, cluster_of(8, 1));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "1 nodes with 1 experts each have fewer experts than the 2 per token");
  EXPECT_EQ(found[0].hint, "use at least 2");
}

TEST(CheckModelParallelism, RefusesNodeLimitsThatPlanFilesCannotHave) {
  const auto found = [](int limit) {
    return finding({.data = 8, .expert = 8}, mixture(kBlocks, 64, 8),
                   [&](Plan& p) { p.strategy.model_parallelism.routing.node_limit = limit; });
  };
  EXPECT_EQ(found(-1), "--expert-node-limit: -1 is out of range: expected 0 to 1000000");
  EXPECT_EQ(found(1'000'001),
            "--expert-node-limit: 1000001 is out of range: expected 0 to 1000000");
  EXPECT_EQ(found(1'000'000), "");
}

// Gates select among as many equal blocks of experts as there are nodes. 12 expert ranks form two
// blocks of 6: on nodes of 8 and 4 devices the second block spans both nodes. On nodes of 6, the
// first 8 ranks are split 6 and 2; on nodes of 12, the second group of 8 is split 4 and 4.
TEST(CheckModelParallelism, RequiresBlocksOfExpertsWithinNodes) {
  const auto found = [](int ranks, int experts, const Cluster& cluster) {
    const ModelGraph model = mixture(kBlocks, 64, experts);
    Plan plan = plan_of(strategy_of({.data = ranks, .expert = experts}, 4), kBlocks);
    plan.strategy.model_parallelism.routing.node_limit = 1;
    plan.strategy.global_batch = 4 * ranks;
    const std::vector<Diagnostic> all = check_plan(plan, model, cluster);
    EXPECT_LE(all.size(), 1u);
    return all.empty() ? "" : all.front().what;
  };
  Cluster uneven = cluster_of(1, 8);
  NodeModel small = uneven.nodes.begin()->second;
  small.device_count = 4;
  uneven.nodes["small"] = small;
  uneven.groups.push_back({.node = "small", .count = 1});
  EXPECT_EQ(found(12, 12, uneven), "the 12 experts cannot be spread evenly over 2 nodes");
  EXPECT_EQ(found(12, 12, cluster_of(2, 6)), "");
  EXPECT_EQ(found(8, 8, uneven), "");
  EXPECT_EQ(found(24, 8, cluster_of(4, 6)), "the 8 experts cannot be spread evenly over 3 nodes");
  EXPECT_EQ(found(24, 8, cluster_of(2, 12)), "");
}

TEST(CheckModelParallelism, RequiresDivisibleHeadsForAllToAll) {
  const auto exchange = [](Plan& p) {
    p.strategy.model_parallelism.context = ContextAlgorithm::kAllToAll;
  };
  const ModelGraph model = gpt({.blocks = kBlocks});
  EXPECT_EQ(finding({.context = 4}, model, exchange), "");
  Plan plan = plan_of(strategy_of({.context = 4, .tensor = 2}, 4), kBlocks);
  exchange(plan);
  const auto found = check_plan(plan, model, cluster_of(4, 4));
  ASSERT_EQ(found.size(), 2u);  // heads, and as many key/value heads
  EXPECT_EQ(found[0].what,
            "with all-to-all, context-parallel size 4 does not divide the 2 attention heads of "
            "'tiny-gpt' per tensor rank (tp 2)");
  EXPECT_EQ(found[0].hint, "use a divisor of 2, or --context-algorithm ring or all-gather");
  EXPECT_THAT(finding({.context = 4}, model,
                      [](Plan& p) {
                        p.strategy.model_parallelism.context = ContextAlgorithm::kRing;
                        p.strategy.attention = AttentionAlgorithm::kStandard;
                      }),
              HasSubstr("ring attention requires flash attention"));
}

// Zigzag needs two chunks per context rank, all-to-all only one.
TEST(CheckModelParallelism, RequiresADivisibleSequencePerAlgorithm) {
  const auto length = [](ContextAlgorithm algorithm, std::int64_t tokens) {
    return finding({.context = 4}, gpt({.blocks = kBlocks}), [&](Plan& p) {
      p.strategy.model_parallelism.context = algorithm;
      p.strategy.sequence_length = tokens;
    });
  };
  EXPECT_EQ(length(ContextAlgorithm::kAllToAll, 100), "");
  EXPECT_EQ(length(ContextAlgorithm::kRing, 100),
            "--cp: sequence length 100 is not a multiple of 2 x context-parallel size 4");
  EXPECT_EQ(length(ContextAlgorithm::kAllToAll, 102),
            "--cp: sequence length 102 is not a multiple of context-parallel size 4");
}

TEST(CheckModelParallelism, RequiresSequenceParallelismForTensorOverlap) {
  EXPECT_EQ(finding({.tensor = 2}, gpt({.blocks = kBlocks}),
                    [](Plan& p) { p.strategy.model_parallelism.tensor_overlap = true; }),
            "--tp-comm-overlap: requires '--sequence-parallel'");
}

TEST(CheckModelParallelism, RejectsInvalidRankOrders) {
  const auto order = [](ParallelDegrees degrees, const ModelGraph& model, const char* text) {
    return finding(degrees, model, [&](Plan& p) {
      p.strategy.model_parallelism.order = *rank_order_from_text(text);
    });
  };
  const ModelGraph dense = gpt({.blocks = kBlocks});
  const ParallelDegrees all{.data = 2, .pipeline = 2, .context = 2, .tensor = 2};
  EXPECT_EQ(order(all, dense, "dp-cp-ep-tp-pp"), "");
  EXPECT_EQ(order(all, dense, "pp-tp-cp-ep-dp"), "");
  EXPECT_EQ(order(all, dense, "tp-cp-ep-pp-dp"), "") << "there are no expert layers";
  EXPECT_EQ(order(all, dense, "cp-tp-ep-dp-pp"),
            "--rank-order: 'cp-tp-ep-dp-pp' puts tp between cp and dp, which share parameters");
  EXPECT_EQ(order({.data = 4, .pipeline = 2, .tensor = 2, .expert = 4}, mixture(kBlocks),
                  "tp-pp-cp-ep-dp"),
            "--rank-order: 'tp-pp-cp-ep-dp' puts neighboring stages 2 ranks apart for dense layers "
            "but 1 for expert layers");
}

TEST(CheckModelParallelism, ChecksManualPlacement) {
  const auto by_hand = [](std::vector<int> devices, const char* schedule, std::vector<int> blocks) {
    return finding({.pipeline = 2}, gpt({.blocks = kBlocks}), [&](Plan& p) {
      p.strategy.schedule = schedule;
      p.device_of_stage = std::move(devices);
      p.blocks_per_stage = std::move(blocks);
    });
  };
  EXPECT_EQ(by_hand({0, 1, 0}, "gpipe", {1, 2, 1}), "");
  EXPECT_EQ(by_hand({1, 0}, "naive", {1, 3}), "");
  EXPECT_EQ(by_hand({0, 2}, "gpipe", {2, 2}),
            "--stage-devices: device 2 is out of range: expected 0 to 1");
  EXPECT_EQ(by_hand({0, 0}, "gpipe", {2, 2}), "--stage-devices: device 1 of 2 has no stage");
  EXPECT_EQ(by_hand({0, 1}, "1f1b", {2, 2}),
            "--stage-devices: manual stage placement does not support schedule '1f1b'");
  EXPECT_EQ(by_hand({0, 1, 0}, "gpipe", {2, 2}),
            "--stage-devices: expected 2 entries (one per stage), got 3");
  EXPECT_THAT(by_hand({0, 1}, "gpipe", {2, 1}), HasSubstr("3 blocks in total"));
}

TEST(RankOrderText, ReadsBackWhatItWritesAndNothingElse) {
  EXPECT_EQ(to_text(RankOrder{}), "tp-cp-ep-dp-pp");
  for (const char* text : {"tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "ep-tp-dp-cp-pp"})
    EXPECT_EQ(to_text(*rank_order_from_text(text)), text);
  for (const char* text : {"", "tp", "tp-cp-ep-dp", "tp-tp-ep-dp-pp", "tp-cp-ep-dp-pp-",
                           "tp-cp-ep-dp-xx", "-tp-cp-ep-dp-pp"})
    EXPECT_FALSE(rank_order_from_text(text)) << text;
}

// tp 2, cp 3, dp 5, pp 7: strides are products of the faster degrees. Experts: etp 1, ep 10, so 3
// replicas; without context ranks.
TEST(RankOrder, DeterminesTheStrides) {
  const ParallelDegrees d{.data = 5, .pipeline = 7, .context = 3, .tensor = 2, .expert = 10};
  // Of tensor, context, data and pipeline ranks; expert-tensor, expert, expert-data, and again.
  EXPECT_EQ(strides_of(d, {}), (RankStrides{1, 2, 6, 30, 1, 1, 10, 30}));
  const RankOrder other = *rank_order_from_text("pp-dp-ep-cp-tp");
  EXPECT_EQ(strides_of(d, other), (RankStrides{105, 35, 7, 1, 210, 21, 7, 1}));
  for (int rank = 0; rank < 210; ++rank)
    EXPECT_EQ(rank_at(d, coordinate_of(d, RankId(rank), other), other), RankId(rank));
}

}  // namespace
}  // namespace meshwright
