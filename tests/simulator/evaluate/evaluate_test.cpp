#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

Evaluation evaluated(const GraphBuilder& g) {
  JobFacts job;
  job.job_ranks = static_cast<std::int64_t>(g.graph.ranks.size());
  return evaluate(g.graph, g.prices, simulate(g.graph, g.prices), job);
}
Ticks compute_of(const RankBreakdown& parts) {
  Ticks sum;
  for (const Ticks part : parts.compute) sum += part;
  return sum;
}
Ticks exposed(const RankBreakdown& parts, Axis axis) {
  return parts.exposed_communication[static_cast<std::size_t>(axis)];
}
Ticks bubble(const RankBreakdown& parts, BubbleCause cause) {
  return parts.bubble[static_cast<std::size_t>(cause)];
}
GraphBuilder two_stages(std::string_view schedule, int microbatches, const StageTimes& times,
                        const MessageCost& message = {}) {
  return pipeline_graph(schedule_of(schedule, {.devices = 2, .microbatches = microbatches}), times,
                        message);
}

// F = 10, B = 20, one micro-batch after another: each of the two devices works half of the time.
TEST(Evaluate, FindsTwoNaiveDevicesIdleForHalfOfTheTime) {
  const Evaluation e =
      evaluated(two_stages("naive", 3, uniform_times(2, Ticks(10), Ticks(10), Ticks(10))));
  EXPECT_EQ(e.step_time, Ticks(3 * 2 * 30));
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, 0.5);
}

// Two micro-batches on two devices: (m + p - 1)(F + B) = 90, of which each works 60.
TEST(Evaluate, FindsTwoGpipeDevicesWithTwoMicrobatchesIdleForAThird) {
  const Evaluation e =
      evaluated(two_stages("gpipe", 2, uniform_times(2, Ticks(10), Ticks(10), Ticks(10))));
  EXPECT_EQ(e.step_time, Ticks(90));
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, 1.0 / 3.0);
}

// 1F1B, F = 10, B = 20; messages take 4 of their sender's time and arrive 3 later, so 7 in all.
//   rank 0: F0 [0,10) F1 [10,20)                        B0 [54,74)            B1 [84,104)
//   rank 1:             F0 [17,27) B0 [27,47) F1 [47,57) B1 [57,77)
//   sent:   F0 10 -> 17,  F1 20 -> 27,  B0 47 -> 54,  B1 77 -> 84
// Rank 0 is idle in [20,54), the message on its way in [47,54), and in [74,84), the message
// on its way in [77,84): 14 exposed, 27 + 3 dependency. Rank 1 waits in [0,17), from 10 on for the
// message: 10 warm-up, 7 exposed; after its last backward 104 - 77 = 27 drain.
TEST(Evaluate, ExplainsEveryTickOfATwoStagePipeline) {
  const Evaluation e =
      evaluated(two_stages("1f1b", 2, uniform_times(2, Ticks(10), Ticks(15), Ticks(5)),
                           {.occupancy = Ticks(4), .latency = Ticks(3)}));
  EXPECT_EQ(e.step_time, Ticks(104));
  ASSERT_EQ(e.ranks.size(), 2u);
  EXPECT_EQ(compute_of(e.ranks[0]), Ticks(60));
  EXPECT_EQ(exposed(e.ranks[0], Axis::kPipeline), Ticks(14));
  EXPECT_EQ(bubble(e.ranks[0], BubbleCause::kDependency), Ticks(30));
  EXPECT_EQ(bubble(e.ranks[0], BubbleCause::kImbalance), Ticks(0));
  EXPECT_EQ(compute_of(e.ranks[1]), Ticks(60));
  EXPECT_EQ(exposed(e.ranks[1], Axis::kPipeline), Ticks(7));
  EXPECT_EQ(bubble(e.ranks[1], BubbleCause::kWarmUp), Ticks(10));
  EXPECT_EQ(bubble(e.ranks[1], BubbleCause::kDrain), Ticks(27));
  // Rank 0 runs passes from 0 to 104 and is idle for 30 of it; rank 1 from 17 to 77: of 104, the
  // other 44 are bubble. The message of rank 1's warm-up is outside its passes.
  EXPECT_EQ(e.period, Ticks(104));
  EXPECT_EQ(e.pipeline_makespan, Ticks(104));
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, (30.0 + 44.0) / 2 / 104);
  EXPECT_DOUBLE_EQ(e.bubble_of_period, (30.0 + 44.0) / 2 / 104);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 30.0 / 104);
}

// 1F1B with p = 4, m = 8, F = 10, B = 20 and free messages: (m + p - 1)(F + B) = 330, of which
// every rank works 240; the bubble is (p - 1) / (m + p - 1) = 3 / 11 for each rank, so that mean
// and minimum over ranks agree (Narayanan et al., arXiv 2104.04473, section 2.2.1). Rank r runs
// passes from 10 r to 330 - 20 r, so the period is that of rank 0: the makespan.
TEST(Evaluate, GivesEqualStagesTheSameBubble) {
  const GraphBuilder g = pipeline_graph(schedule_of("1f1b", {.devices = 4, .microbatches = 8}),
                                        uniform_times(4, Ticks(10), Ticks(10), Ticks(10)));
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.period, Ticks(330));
  EXPECT_EQ(e.pipeline_makespan, Ticks(330));
  EXPECT_DOUBLE_EQ(e.bubble_of_period, 3.0 / 11);
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, 3.0 / 11);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 3.0 / 11);
}

// Stage 0: F = B = 10; stage 1: F = B = 20; 1F1B, free messages.
//   rank 0: F0 [0,10) F1 [10,20)             B0 [50,60)             B1 [90,100)
//   rank 1:           F0 [10,30) B0 [30,50) F1 [50,70) B1 [70,90)
// Rank 0 idles for 60 in between; rank 1 has 80 - 40 = 40 more work, the other 20 are dependency.
TEST(Evaluate, BlamesTheSlowerStageForWhatItHasMoreToDo) {
  StageTimes times = uniform_times(2, Ticks(10), Ticks(5), Ticks(5));
  times.forward[1] = Ticks(20);
  times.backward_input[1] = times.backward_weight[1] = Ticks(10);
  const Evaluation e = evaluated(two_stages("1f1b", 2, times));
  EXPECT_EQ(e.step_time, Ticks(100));
  EXPECT_EQ(bubble(e.ranks[0], BubbleCause::kImbalance), Ticks(40));
  EXPECT_EQ(bubble(e.ranks[0], BubbleCause::kDependency), Ticks(20));
  EXPECT_EQ(bubble(e.ranks[1], BubbleCause::kWarmUp), Ticks(10));
  EXPECT_EQ(bubble(e.ranks[1], BubbleCause::kDrain), Ticks(10));
  // Rank 0 is idle for 60 of 100. Rank 1, the busiest, runs passes for 80 without a gap.
  EXPECT_DOUBLE_EQ(e.bubble_of_makespan, (0.6 + 0.2) / 2);
  EXPECT_DOUBLE_EQ(e.bubble_of_period, (0.6 + 0.2) / 2);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 0.2);
}

// The same with stage 0 on three ranks and stage 1 on one: (3 x 0.6 + 0.2) / 4.
TEST(Evaluate, WeightsTheBubbleByMultiplicity) {
  StageTimes times = uniform_times(2, Ticks(10), Ticks(5), Ticks(5));
  times.forward[1] = Ticks(20);
  times.backward_input[1] = times.backward_weight[1] = Ticks(10);
  GraphBuilder g = two_stages("1f1b", 2, times);
  g.graph.ranks[0].multiplicity = 3;
  const Evaluation e = evaluated(g);
  EXPECT_DOUBLE_EQ(e.bubble_of_period, (3 * 0.6 + 0.2) / 4);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 0.2);
}

// The period leaves out what a stage waits before its first pass: 1F1B with one micro-batch and
// F = B = 10 takes 40: rank 0 from 0 to 40 with 20 idle, rank 1 from 10 to 30. A third rank with
// nothing but an optimizer does not count.
TEST(Evaluate, MeasuresThePeriodFromPassToPass) {
  GraphBuilder g = two_stages("1f1b", 1, uniform_times(2, Ticks(10), Ticks(5), Ticks(5)));
  const int other = g.add_rank();
  g.add_task(g.add_compute(TaskKind::kOptimizer, Ticks(500)), {.rank = other});
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.step_time, Ticks(500));
  EXPECT_EQ(e.period, Ticks(40));
  EXPECT_EQ(e.pipeline_makespan, Ticks(40));
  EXPECT_DOUBLE_EQ(e.bubble_of_period, 0.5);
  EXPECT_DOUBLE_EQ(e.busiest_rank_bubble, 0.5);
  EXPECT_EQ(e.ranks[2].optimizer, Ticks(500));
}

// Backward ends at 10 and at 14; gradients are reduced in [14,20), the optimizer runs in [20,25),
// parameters are gathered in [25,29). Rank 0 waits 4 for rank 1, then both wait for the network.
TEST(Evaluate, TellsWaitingForACollectiveFromWaitingForItsMembers) {
  GraphBuilder g;
  std::vector<std::vector<TaskId>> backward, update;
  for (const int duration : {10, 14})
    backward.push_back(
        {g.add_task(g.add_compute(TaskKind::kBackward, Ticks(duration)), {.rank = g.add_rank()})});
  const auto reduced = g.add_collective(g.add_collective_work(Axis::kData, Ticks(6)), Stream::kData,
                                        {0, 1}, backward);
  const WorkId optimizer = g.add_compute(TaskKind::kOptimizer, Ticks(5));
  for (const int rank : {0, 1})
    update.push_back(
        {g.add_task(optimizer, {.rank = rank}, {reduced[static_cast<std::size_t>(rank)]})});
  g.add_collective(g.add_collective_work(Axis::kData, Ticks(4)), Stream::kData, {0, 1}, update);
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.step_time, Ticks(29));
  for (const RankBreakdown& rank : e.ranks) {
    EXPECT_EQ(exposed(rank, Axis::kData), Ticks(10));
    EXPECT_EQ(rank.optimizer, Ticks(5));
  }
  EXPECT_EQ(bubble(e.ranks[0], BubbleCause::kDrain), Ticks(4));
  EXPECT_EQ(bubble(e.ranks[1], BubbleCause::kDrain), Ticks(0));
}

// Backwards in [0,10) and [10,20); the first bucket is reduced in [10,26), the second in [26,32),
// the optimizer starts at 32. 10 of the 22 are hidden, 12 are exposed though the optimizer names
// the second bucket only.
TEST(Evaluate, FollowsAChainOfCollectivesBackToWhatHidesIt) {
  GraphBuilder g(1);
  const WorkId pass = g.add_compute(TaskKind::kBackward, Ticks(10));
  const TaskId b0 = g.add_task(pass, {.rank = 0});
  const TaskId b1 = g.add_task(pass, {.rank = 0});
  g.add_collective(g.add_collective_work(Axis::kData, Ticks(16)), Stream::kData, {0}, {{b0}});
  const auto second =
      g.add_collective(g.add_collective_work(Axis::kData, Ticks(6)), Stream::kData, {0}, {{b1}});
  g.add_task(g.add_compute(TaskKind::kOptimizer, Ticks(3)), {.rank = 0}, {second[0]});
  const Evaluation e = evaluated(g);
  EXPECT_EQ(e.step_time, Ticks(35));
  EXPECT_EQ(exposed(e.ranks[0], Axis::kData), Ticks(12));
  EXPECT_EQ(compute_of(e.ranks[0]), Ticks(20));
}

// Inside a task: 5 GEMM, 2 memory-bound, 3 blocking tensor all-reduce, 4 recomputed; 14 in all.
TEST(Evaluate, TakesTasksApartAsTheirPricesSay) {
  GraphBuilder g(1);
  const WorkId work = g.add_compute(TaskKind::kBackward, Ticks(5));
  WorkPrice& price = g.prices[work.index()];
  price.kernels[static_cast<std::size_t>(KernelKind::kMemoryBound)] = Ticks(2);
  price.communication[static_cast<std::size_t>(Axis::kTensor)] = Ticks(3);
  price.recompute = Ticks(4);
  price.duration = Ticks(14);
  g.add_task(work, {.rank = 0});
  g.add_task(work, {.rank = 0});
  const Evaluation e = evaluated(g);
  const RankBreakdown& parts = e.ranks[0];
  EXPECT_EQ(e.step_time, Ticks(28));
  EXPECT_EQ(parts.compute[static_cast<std::size_t>(KernelKind::kGemm)], Ticks(10));
  EXPECT_EQ(parts.compute[static_cast<std::size_t>(KernelKind::kMemoryBound)], Ticks(4));
  EXPECT_EQ(exposed(parts, Axis::kTensor), Ticks(6));
  EXPECT_EQ(parts.recompute, Ticks(8));
}

TEST(Evaluate, RefusesPricesThatDoNotAddUp) {
  GraphBuilder g(1);
  const WorkId work = g.add_compute(TaskKind::kForward, Ticks(5));
  g.prices[work.index()].duration = Ticks(6);
  g.add_task(work, {.rank = 0});
  EXPECT_THROW(evaluated(g), InternalError);
}

// A step of 2 ms on 4 GPUs, one of them standing for 3: arithmetic done is 3 x 10 + 1 x 10 =
// 40 GFLOP, so 5 TFLOP/s a GPU; the model needs 32 GFLOP: 4 TFLOP/s. Peak 20 TFLOP/s.
TEST(Evaluate, CountsRanksByMultiplicityInRates) {
  GraphBuilder g;
  g.add_rank(3);
  g.add_rank(1);
  const WorkId work = g.add_compute(TaskKind::kForward, to_ticks(Seconds(2e-3)));
  g.prices[work.index()].flops = Flops(10e9);
  g.add_task(work, {.rank = 0});
  g.add_task(work, {.rank = 1});
  const Evaluation e = evaluate(g.graph, g.prices, simulate(g.graph, g.prices),
                                {.model_flops_per_step = Flops(32e9),
                                 .tokens_per_step = 4096,
                                 .job_ranks = 4,
                                 .device_peak = FlopsPerSecond(20e12),
                                 .memory_capacity = Bytes(80)});
  EXPECT_DOUBLE_EQ(e.hardware_flops_per_gpu.value, 5e12);
  EXPECT_DOUBLE_EQ(e.model_flops_per_gpu.value, 4e12);
  EXPECT_DOUBLE_EQ(e.mfu, 0.2);
  EXPECT_DOUBLE_EQ(e.hfu, 0.25);
  EXPECT_DOUBLE_EQ(e.tokens_per_second_per_gpu, 4096 / 2e-3 / 4);
  EXPECT_EQ(e.multiplicity, (std::vector<int>{3, 1}));
  EXPECT_EQ(e.memory_capacity, Bytes(80));
}

// For all schedules and sizes, with unequal stages and slow messages: the parts of every rank add
// up to the step, none is negative, and compute is what the rank was given to do.
TEST(Evaluate, AddsUpForEverySmallPipeline) {
  for (const std::string_view name : {"naive", "gpipe", "1f1b", "interleaved-1f1b"})
    for (int p = 2; p <= 5; ++p)
      for (int m = p; m <= 3 * p; m += p)
        for (const int latency : {0, 3, 400}) {
          SCOPED_TRACE(testing::Message() << name << " p=" << p << " m=" << m << " " << latency);
          const int v = name == "interleaved-1f1b" ? 2 : 1;
          StageTimes times = uniform_times(p * v, Ticks(100), Ticks(120), Ticks(90));
          for (std::size_t s = 0; s < times.forward.size(); ++s)
            times.forward[s] += Ticks(static_cast<std::int64_t>(s * 37 % 11) * 10);
          const GraphBuilder g =
              pipeline_graph(schedule_of(name, {.devices = p, .microbatches = m, .chunks = v}),
                             times, {.occupancy = Ticks(latency / 2), .latency = Ticks(latency)});
          std::vector<Ticks> work(static_cast<std::size_t>(p));
          for (const Task& task : g.graph.tasks)
            if (task.stream == Stream::kCompute)
              work[static_cast<std::size_t>(task.rank)] += g.prices[task.work.index()].duration;
          const Evaluation e = evaluated(g);
          for (std::size_t r = 0; r < e.ranks.size(); ++r) {
            EXPECT_EQ(total(e.ranks[r]), e.step_time);
            EXPECT_EQ(compute_of(e.ranks[r]), work[r]);
            for (const Ticks part : e.ranks[r].bubble) EXPECT_GE(part, Ticks(0));
            for (const Ticks part : e.ranks[r].exposed_communication) EXPECT_GE(part, Ticks(0));
          }
        }
}

// The bubble fraction of the makespan against the breakdown, which is counted in another way: with
// free messages compute and bubble are all of it; messages can only move idle time from the bubble
// of the breakdown to its exposed communication, and of the latter only what is outside the passes
// of a rank counts as bubble of the pipeline.
TEST(Evaluate, HasABubbleThatAgreesWithTheBreakdown) {
  for (const std::string_view name : {"naive", "gpipe", "1f1b", "zb-h1"})
    for (int p = 2; p <= 5; ++p)
      for (const int latency : {0, 3, 400}) {
        SCOPED_TRACE(testing::Message() << name << " p=" << p << " latency=" << latency);
        StageTimes times = uniform_times(p, Ticks(100), Ticks(120), Ticks(90));
        for (std::size_t s = 0; s < times.forward.size(); ++s)
          times.forward[s] += Ticks(static_cast<std::int64_t>(s * 37 % 11) * 10);
        const Evaluation e = evaluated(
            pipeline_graph(schedule_of(name, {.devices = p, .microbatches = 2 * p}), times,
                           {.occupancy = Ticks(latency / 2), .latency = Ticks(latency)}));
        double bubble_share_of_step = 0;
        const StepShares shares = step_shares(e);
        for (const double part : shares.bubble) bubble_share_of_step += part;
        const double exposed_share = exposed_communication_share(e, Axis::kPipeline);
        constexpr double kRounding = 1e-12;
        if (latency == 0) {
          EXPECT_EQ(exposed_share, 0);
          EXPECT_NEAR(e.bubble_of_makespan, bubble_share_of_step, kRounding);
          EXPECT_NEAR(e.bubble_of_makespan + compute_share(e), 1, kRounding);
        }
        EXPECT_GE(e.bubble_of_makespan, bubble_share_of_step - kRounding);
        EXPECT_LE(e.bubble_of_makespan, bubble_share_of_step + exposed_share + kRounding);
        EXPECT_LE(e.busiest_rank_bubble, e.bubble_of_period + kRounding);
        EXPECT_LE(e.bubble_of_period, e.bubble_of_makespan + kRounding);
      }
}

}  // namespace
}  // namespace meshwright
