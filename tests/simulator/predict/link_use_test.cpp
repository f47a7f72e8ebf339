#include "simulator/predict/link_use.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/lowering/lower.hpp"
#include "models/families/load_model.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr Ticks kStep(kTicksPerSecond / 1000);

/// A small GPT-2 on nodes of 8 devices.
struct SmallJob {
  explicit SmallJob(const ParallelDegrees& degrees)
      : model(model_from_config({.name = "small", .where = "small.json", .text = R"({
          "model_type": "gpt2", "n_embd": 64, "n_layer": 8, "n_head": 8, "n_positions": 64,
          "vocab_size": 256})"})),
        cluster(cluster_from_toml(find_cluster("dgx-a100"))) {
    plan.strategy.degrees = degrees;
    plan.strategy.global_batch = 4 * degrees.data;
    plan.strategy.sequence_length = 32;
    plan.blocks_per_stage.assign(static_cast<std::size_t>(degrees.pipeline), 8 / degrees.pipeline);
  }
  LinkUses uses() const { return link_uses(plan, model, cluster, kStep); }

  ModelGraph model;
  Cluster cluster;
  Plan plan;
};

const LinkUse& link(const LinkUses& uses, std::string_view name) {
  const auto found = std::find_if(uses.links.begin(), uses.links.end(),
                                  [&](const LinkUse& one) { return one.name == name; });
  EXPECT_NE(found, uses.links.end()) << name;
  return *found;
}

double bytes_of_step(const LinkUse& use) { return use.used.value * to_seconds(kStep).value; }

// Two stages, 4 micro-batches of 1 x 32 tokens of width 64 in bf16: 4096 bytes each. Four go from
// device 0 to device 1, four gradients come back. The embedding, 256 x 64, is tied to the head:
// both stages all-reduce its fp32 gradient, 65,536 bytes, and the gradient norm, 4 bytes; a
// ring of two moves 2 (2 - 1) / 2 of it over every hop.
TEST(LinkUses, CountTheMessagesBetweenStages) {
  const LinkUses uses = SmallJob({.pipeline = 2}).uses();
  for (const char* name : {"node0.device0.local.out", "node0.device1.local.in",
                           "node0.device1.local.out", "node0.device0.local.in"})
    EXPECT_NEAR(bytes_of_step(link(uses, name)), 4 * 4096 + 65'536 + 4, 1) << name;
  EXPECT_EQ(uses.busiest.size(), 4u);
  EXPECT_DOUBLE_EQ(uses.share_of_device[0], link(uses, "node0.device0.local.out").share());
}

// The tensor-parallel ranks of a stage use rings over all of them: every device sends the same
// amount, and nothing leaves the node.
TEST(LinkUses, LoadAllDevicesOfAGroupAlike) {
  const LinkUses uses = SmallJob({.tensor = 8}).uses();
  const double first = uses.share_of_device[0];
  EXPECT_GT(first, 0);
  for (int d = 0; d < 8; ++d)
    EXPECT_NEAR(uses.share_of_device[static_cast<std::size_t>(d)], first, 1e-9 * first);
  for (const double share : uses.share_of_network) EXPECT_EQ(share, 0);
}

// Two replicas on two nodes reduce their gradients over the network ports only.
TEST(LinkUses, LoadPortsWhereReplicasLieOnTwoNodes) {
  const LinkUses uses = SmallJob({.data = 2, .tensor = 8}).uses();
  ASSERT_EQ(uses.share_of_network.size(), 2u);
  EXPECT_GT(uses.share_of_network[0], 0);
  EXPECT_NEAR(uses.share_of_network[0], uses.share_of_network[1], 1e-9 * uses.share_of_network[0]);
  for (std::size_t i = 1; i < uses.busiest.size(); ++i)
    EXPECT_GE(uses.links[uses.busiest[i - 1]].share(), uses.links[uses.busiest[i]].share());
}

// Two workers on devices 0 and 1, a server on device 2: the server receives both gradients and
// sends the weights twice, so that every worker has half of its traffic.
TEST(LinkUses, CountTheTrafficOfSeparateServers) {
  SmallJob job({.data = 2});
  job.plan.strategy.data_parallelism.kind = DataParallelKind::kParameterServer;
  const LinkUses uses = job.uses();
  ASSERT_EQ(uses.share_of_device.size(), 3u);
  const double pushed = bytes_of_step(link(uses, "node0.device0.local.out"));
  EXPECT_GT(pushed, 0);
  EXPECT_NEAR(bytes_of_step(link(uses, "node0.device1.local.out")), pushed, 1);
  EXPECT_NEAR(bytes_of_step(link(uses, "node0.device2.local.in")), 2 * pushed, 1);
}

TEST(LinkUses, EstimateTheTasksOfAllRanksFromOneOfEachClass) {
  const SmallJob job({.data = 2, .pipeline = 2});
  const TaskGraph folded = lower(job.plan, job.model, job.cluster);
  const TaskGraph whole = lower(job.plan, job.model, job.cluster, {.ranks = RankSet::kAll});
  ASSERT_LT(folded.tasks.size(), whole.tasks.size());
  EXPECT_EQ(task_count_of_all_ranks(folded, 4), static_cast<std::int64_t>(whole.tasks.size()));
}

}  // namespace
}  // namespace meshwright
