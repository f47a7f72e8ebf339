#include "planner/partition/lower_partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "models/load/load.hpp"
#include "tests/planner/partition/kernel_graphs.hpp"

namespace meshwright {
namespace {

using ::testing::IsEmpty;

ReplicatedStage stage(std::vector<std::int32_t> nodes, std::vector<std::int32_t> variant, int data,
                      int inflight) {
  ReplicatedStage made;
  made.nodes = std::move(nodes);
  made.variant = std::move(variant);
  made.data = data;
  made.inflight = inflight;
  return made;
}

class LoweredPartitions : public ::testing::Test {
 protected:
  /// `stages` of residual(), for four micro-batches.
  Prediction predict(std::vector<ReplicatedStage> stages, int zero = 0) {
    return predict(residual(), std::move(stages), zero);
  }
  Prediction predict(const KernelGraph& graph, std::vector<ReplicatedStage> stages, int zero) {
    graph_ = graph;
    priced_ = price_training(graph_, ByteCost(),
                             {.count = 2, .memory = Bytes(1000), .microbatches = 4}, "m.onnx");
    ReplicationPartition partition;
    partition.stages = std::move(stages);
    training_ = expand(graph_, priced_, partition);
    const LoweredPartition lowered{graph_, priced_, training_, cluster_, {}, zero};
    Prediction prediction = predict_partition(lowered, ByteCost());
    EXPECT_THAT(check_task_graph(prediction.graph), IsEmpty());
    return prediction;
  }

  Cluster cluster_ = cluster_from_toml(find_cluster("dgx-a100"));
  KernelGraph graph_;
  PricedKernelGraph<ReplicationProblem> priced_;
  TrainingPartition training_;
};

constexpr std::int64_t kMicrosecond = 1'000'000;  // in ticks

/// In microseconds: a: F 100, B 200; b and c: F 70, B 130; a message of tensor 0: 10 and 2 more.
/// The last backward pass of a ends at 1348: F0 0-100, F1 -200, B0 324-524, F2 -624, B1 -824, F3
/// -924, B2 -1124, B3 1148-1348. The update of 2 parameters moves 46 bytes each. b and c have 4,
/// and a copy of one of a.
TEST_F(LoweredPartitions, RunOneForwardOneBackward) {
  const Prediction step = predict({stage({0}, {0}, 1, 2), stage({1, 2}, {0, 0}, 1, 1)});
  EXPECT_EQ(step.evaluation.step_time, Ticks((1348 + 2 * 46) * kMicrosecond));
  ASSERT_EQ(step.graph.ranks.size(), 2U);
  // 18 bytes per parameter, and 50 saved bytes per node and micro-batch in flight.
  EXPECT_EQ(total(step.evaluation.peak_memory[0]), Bytes(2 * 18 + 2 * 50));
  EXPECT_EQ(total(step.evaluation.peak_memory[1]), Bytes(5 * 18 + 2 * 50));
}

/// b keeps the 10 bytes that it reads instead of 50, computes 40 us again, and then holds 50.
TEST_F(LoweredPartitions, RecomputeWhatTheirVariantsSay) {
  const Prediction stored = predict({stage({0, 1, 2}, {0, 0, 0}, 1, 1)});
  const Prediction recomputed = predict({stage({0, 1, 2}, {0, 1, 0}, 1, 1)});
  EXPECT_EQ(recomputed.evaluation.step_time - stored.evaluation.step_time,
            Ticks(4 * 40 * kMicrosecond));
  EXPECT_EQ(recomputed.evaluation.ranks[0].recompute, Ticks(4 * 40 * kMicrosecond));
  EXPECT_EQ(total(stored.evaluation.peak_memory[0]), Bytes(6 * 18 + 3 * 50));
  EXPECT_EQ(total(recomputed.evaluation.peak_memory[0]), Bytes(6 * 18 + 2 * 50 + 10 + 50));
}

/// Two micro-batches of 500 us each on either replica, an all-reduce of 6 fp32 gradients, an update
/// of 6 parameters: tied ones count once.
TEST_F(LoweredPartitions, ReduceGradientsOfReplicas) {
  const Prediction step = predict({stage({0, 1, 2}, {0, 0, 0}, 2, 1)});
  EXPECT_EQ(step.evaluation.step_time, Ticks((1000 + 6 * 46) * kMicrosecond));
  ASSERT_EQ(step.graph.collectives.size(), 1U);
  const Task& member = step.graph.tasks[static_cast<std::size_t>(step.graph.collectives[0].first)];
  const Collective& all_reduce = step.graph.works[member.work.index()].collective;
  EXPECT_EQ(all_reduce.bytes, Bytes(24));
  EXPECT_EQ(all_reduce.group, (GroupShape{.ranks = 2, .nodes = 1, .groups_per_node = 1}));
}

std::map<CollectiveKind, int> collectives_of(const TaskGraph& graph) {
  std::map<CollectiveKind, int> counts;
  for (const auto& collective : graph.collectives) {
    const Task& member = graph.tasks[static_cast<std::size_t>(collective.first)];
    ++counts[graph.works[member.work.index()].collective.kind];
  }
  return counts;
}

/// ZeRO 1: each replica updates 3 of 6 parameters, and clears 6 gradients.
TEST_F(LoweredPartitions, ShardTheOptimizer) {
  const Prediction step = predict({stage({0, 1, 2}, {0, 0, 0}, 2, 1)}, 1);
  EXPECT_EQ(step.evaluation.step_time, Ticks((1000 + 3 * 42 + 6 * 4) * kMicrosecond));
  EXPECT_EQ(collectives_of(step.graph),
            (std::map<CollectiveKind, int>{{CollectiveKind::kReduceScatter, 1},
                                           {CollectiveKind::kAllGather, 1}}));
  EXPECT_EQ(total(step.evaluation.peak_memory[0]), Bytes(6 * (2 + 4) + 3 * 12 + 3 * 50));
}

/// ZeRO 3, two micro-batches on either replica: the unit is gathered once, as nothing else is used
/// between its passes, and either backward pass reduces its gradients.
TEST_F(LoweredPartitions, ShardWeights) {
  const Prediction step = predict({stage({0, 1, 2}, {0, 0, 0}, 2, 1)}, 3);
  EXPECT_EQ(step.evaluation.step_time, Ticks((1000 + 3 * 46) * kMicrosecond));
  EXPECT_EQ(collectives_of(step.graph),
            (std::map<CollectiveKind, int>{{CollectiveKind::kReduceScatter, 2},
                                           {CollectiveKind::kAllGather, 1}}));
  EXPECT_EQ(total(step.evaluation.peak_memory[0]), Bytes(3 * 18 + 6 * (2 + 4) + 3 * 50));
}

/// Twelve products are two units of six: 0 1 | 1 0 | 0 1 | 1 0. Those of the second pass that
/// follow each other share a gather.
TEST_F(LoweredPartitions, GatherAndReduceByUnits) {
  KernelGraph graph;
  for (std::int32_t v = 0; v < 12; ++v) {
    graph.nodes.push_back(node("n" + std::to_string(v), 10, 20));
    graph.nodes.back().forward[0].kind = graph.nodes.back().backward[0].kind = KernelKind::kGemm;
    graph.nodes.back().tied.clear();
    if (v > 0) graph.edges.push_back({v - 1, v, v - 1, Bytes(10)});
  }
  std::vector<std::int32_t> nodes(12), variants(12, 0);
  std::iota(nodes.begin(), nodes.end(), 0);
  const Prediction step = predict(graph, {stage(nodes, variants, 2, 1)}, 3);
  EXPECT_EQ(collectives_of(step.graph),
            (std::map<CollectiveKind, int>{{CollectiveKind::kReduceScatter, 4},
                                           {CollectiveKind::kAllGather, 5}}));
  EXPECT_EQ(step.evaluation.step_time, Ticks((2 * 12 * 30 + 12 * 46) * kMicrosecond));
}

TEST_F(LoweredPartitions, ShardWeightsOfEqualStagesOnly) {
  predict({stage({0}, {0}, 1, 2), stage({1, 2}, {0, 0}, 1, 1)});
  EXPECT_FALSE(can_shard_weights(training_)) << "no replicas";
  predict({stage({0}, {0}, 2, 2), stage({1, 2}, {0, 0}, 1, 1)});
  EXPECT_FALSE(can_shard_weights(training_)) << "different replicas";
  predict({stage({0}, {0}, 3, 2), stage({1, 2}, {0, 0}, 3, 1)});
  EXPECT_FALSE(can_shard_weights(training_)) << "4 micro-batches on 3 replicas";
  predict({stage({0}, {0}, 2, 2), stage({1, 2}, {0, 0}, 2, 1)}, 3);
  EXPECT_TRUE(can_shard_weights(training_));
}

/// Tensor 0 goes from a to b and from b to c, and its gradient back: four messages per micro-batch
/// with 10 bytes to b, 10 + 20 to c.
TEST_F(LoweredPartitions, PassTensorsOnFromReaderToReader) {
  const Prediction step =
      predict({stage({0}, {0}, 1, 3), stage({1}, {0}, 1, 2), stage({2}, {0}, 1, 1)});
  std::map<std::int64_t, int> sends;
  for (const Task& task : step.graph.tasks)
    if (task.kind == TaskKind::kSend)
      ++sends[step.graph.works[task.work.index()].transfer.bytes.value];
  EXPECT_EQ(sends, (std::map<std::int64_t, int>{{10, 8}, {30, 8}}));
}

/// Random graphs: no stage deadlocks, and a step takes at least the work of every replica.
TEST(LowerPartition, RunsWhateverPartitionIsFound) {
  const Cluster cluster = cluster_from_toml(find_cluster("dgx-a100"));
  std::uint32_t state = 7;
  int replicated = 0, stages = 0, sharded_weights = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const KernelGraph graph = random_kernel_graph(state);
    const GraphDevices devices{.count = 1 + static_cast<int>(xorshift32(state) % 6),
                               .memory = Bytes(4000),
                               .microbatches = 12};
    const auto priced = price_training(graph, ByteCost(), devices, "m.onnx");
    const auto partition = partition_with_replication(priced.problem);
    if (!partition) continue;
    const TrainingPartition training = expand(graph, priced, *partition);
    const Prediction step = predict_partition({graph, priced, training, cluster}, ByteCost());
    ASSERT_THAT(check_task_graph(step.graph), IsEmpty()) << "trial " << trial;
    for (const ReplicatedStage& each : training.partition.stages) {
      replicated += each.data > 1 ? 1 : 0;
      Seconds work;
      for (const std::int32_t node : each.nodes)
        work += time_of(graph.nodes[static_cast<std::size_t>(node)].forward, ByteCost()) +
                time_of(graph.nodes[static_cast<std::size_t>(node)].backward, ByteCost());
      EXPECT_GE(step.evaluation.step_time, to_ticks(work * (12 / each.data)));
    }
    stages += static_cast<int>(training.partition.stages.size());
    for (const int zero : {1, 3}) {
      if (zero == 3 && !can_shard_weights(training)) continue;
      const Prediction sharded =
          predict_partition({graph, priced, training, cluster, {}, zero}, ByteCost());
      ASSERT_THAT(check_task_graph(sharded.graph), IsEmpty()) << "trial " << trial;
      EXPECT_LE(sharded.evaluation.step_time, step.evaluation.step_time);
      sharded_weights += zero == 3 ? 1 : 0;
    }
  }
  EXPECT_GT(replicated, 50);
  EXPECT_GT(stages, 200);
  EXPECT_GT(sharded_weights, 20);
}

}  // namespace
}  // namespace meshwright
