// Programs of works: the steps of a pass with its buffers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/lowering/lower.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

Cluster with_own_kernels(Cluster cluster) {
  for (auto& [name, device] : cluster.devices) device.kernels = KernelLibrary::kOwn;
  return cluster;
}

const Work& work_of_stage(const TaskGraph& graph, TaskKind kind, int stage) {
  for (const Task& task : graph.tasks)
    if (task.kind == kind && task.stage == stage) return graph.works[task.work.index()];
  throw std::logic_error("the stage has no such task");
}
const WorkProgram& program_of(const TaskGraph& graph, const Work& work) {
  return graph.programs.at(static_cast<std::size_t>(work.program));
}

/// Follows the events of a program, without the recorder that made them.
struct Followed {
  std::map<BufferKey, HeldBuffer> live;
  Bytes now, peak;

  void follow(const WorkProgram& program) {
    peak = now;
    for (const BufferEvent& event : program.buffers) {
      const Bytes bytes = event.held.bytes;
      switch (event.action) {
        case BufferAction::kAcquire:
          ASSERT_FALSE(live.contains(event.buffer));
          live[event.buffer] = event.held;
          now += bytes;
          break;
        case BufferAction::kConsume:
        case BufferAction::kRelease:
          ASSERT_EQ(live.at(event.buffer), event.held);
          live.erase(event.buffer);
          now -= bytes;
          break;
        case BufferAction::kBeginTemporary:
          now += bytes;
          break;
        case BufferAction::kEndTemporary:
          now -= bytes;
          break;
      }
      peak = std::max(peak, now);
    }
  }
};

// One stage: forward and backward of a micro-batch leave nothing behind, every buffer that is freed
// is live, and the peaks are those of the works.
TEST(WorkProgram, FreesAllBuffersOfAMicrobatch) {
  for (const int tensor : {1, 2, 4})
    for (const bool sequence_parallel : {false, true})
      for (const RecomputeKind recompute :
           {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull})
        for (const bool experts : {false, true}) {
          Strategy s = strategy_of({.tensor = tensor}, 1);
          s.sequence_parallel = sequence_parallel && tensor > 1;
          s.recompute.kind = recompute;
          s.attention = AttentionAlgorithm::kStandard;
          SCOPED_TRACE(testing::Message()
                       << "tp " << tensor << " sp " << s.sequence_parallel << " recompute "
                       << static_cast<int>(recompute) << " experts " << experts);
          const TaskGraph graph = lower(plan_of(s, 2), experts ? mixture(2) : gpt({.blocks = 2}),
                                        with_own_kernels(cluster_of(1, 4)));
          Followed followed;
          const Work& forward = work_of_stage(graph, TaskKind::kForward, 0);
          followed.follow(program_of(graph, forward));
          EXPECT_EQ(followed.now, total(forward.acquired));
          EXPECT_EQ(followed.peak, total(forward.acquired) + total(forward.transient));
          const Work& backward = work_of_stage(graph, TaskKind::kBackward, 0);
          followed.follow(program_of(graph, backward));
          EXPECT_EQ(followed.peak, total(forward.acquired) + total(backward.transient));
          EXPECT_EQ(followed.now, Bytes(0));
          EXPECT_TRUE(followed.live.empty());
        }
}

// gpt(): a block of 12 operators is norm, q, k, v, attention, projection, residual, norm, up, gelu,
// down, residual. Its layers 1 and 2 run the same part; steps name the operators of their own
// layer.
TEST(WorkProgram, NamesLayerAndOperatorOfEveryStep) {
  const ModelGraph model = gpt({.blocks = 2});
  const TaskGraph graph = lower(plan_of(strategy_of({}, 1), 2), model, cluster_of(1, 1),
                                {.ranks = RankSet::kAll, .programs = true});
  const WorkProgram& program = program_of(graph, work_of_stage(graph, TaskKind::kForward, 0));
  for (const ProgramStep& step : program.steps) {
    const Layer& layer = model.layers[step.layer.index()];
    EXPECT_GE(step.op.value, layer.first_operator);
    EXPECT_LT(step.op.value, layer.first_operator + layer.operator_count);
  }
  const auto count = [&](int layer) {
    return std::ranges::count(program.steps, LayerId(layer), &ProgramStep::layer);
  };
  EXPECT_EQ(count(1), model.layers[1].operator_count);  // a kernel per operator
  EXPECT_EQ(count(2), count(1));
}

// On B200, quantized GEMMs need no transposed copies, and the blocks at the ends stay in 16 bits:
// the steps of quantized and wide blocks differ.
TEST(WorkProgram, RunsTheKernelsOfQuantizedAndWideBlocks) {
  Cluster cluster = with_own_kernels(cluster_of(1, 2));
  for (auto& [name, device] : cluster.devices) {
    device.compute_capability = 100;
    device.peak[static_cast<std::size_t>(Dtype::kFp8)] = FlopsPerSecond(600e12);
  }
  for (const int wide : {0, 1}) {
    Strategy s = strategy_of({.tensor = 2}, 1);
    s.sequence_parallel = true;
    s.dtype = Dtype::kFp8;
    s.precision.wide_blocks = wide;
    EXPECT_NO_THROW(lower(plan_of(s, 3), gpt({.blocks = 3}), cluster, {.check_each_pass = true}))
        << wide << " wide blocks";
  }
}

TEST(WorkProgram, IsListedForOwnKernelsAndOnRequest) {
  const Plan plan = plan_of(strategy_of({}, 1), 2);
  const ModelGraph model = gpt({.blocks = 2});
  EXPECT_TRUE(lower(plan, model, cluster_of(1, 1)).programs.empty());
  EXPECT_FALSE(lower(plan, model, cluster_of(1, 1), {.programs = true}).programs.empty());
  EXPECT_FALSE(lower(plan, model, with_own_kernels(cluster_of(1, 1))).programs.empty());
}

}  // namespace
}  // namespace meshwright
