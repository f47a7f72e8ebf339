#include "simulator/evaluate/idle_parts.hpp"

#include <gtest/gtest.h>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

GraphBuilder one_f_one_b(int devices, int microbatches, Ticks latency) {
  const Schedule schedule = schedule_of("1f1b", {.devices = devices, .microbatches = microbatches});
  const StageTimes times = uniform_times(devices, Ticks(1000), Ticks(1200), Ticks(800));
  return pipeline_graph(schedule, times,
                        {.bytes = Bytes(8), .occupancy = Ticks(100), .latency = latency});
}

// Two devices, one micro-batch, F = 1000, B = 2000, a message occupies 100 and arrives 50 later.
// Rank 1: warm-up until rank 0 sends at 1000, then the message until 1150; F and B end at 4150.
// Rank 0: F ends at 1000; the gradient is sent at 4150 and is there at 4300; B ends at 6300.
TEST(IdleParts, AreCutWhereTheMessageIsSent) {
  const GraphBuilder built = one_f_one_b(2, 1, Ticks(50));
  const SimulatedTimes times = simulate(built.graph, built.prices);
  const auto parts = idle_parts(built.graph, times);
  ASSERT_EQ(parts.size(), 2U);
  const std::vector<IdlePart> first{
      {Ticks(1000), Ticks(4150), BubbleCause::kDependency, std::nullopt},
      {Ticks(4150), Ticks(4300), BubbleCause::kDependency, Axis::kPipeline}};
  const std::vector<IdlePart> second{
      {Ticks(0), Ticks(1000), BubbleCause::kWarmUp, std::nullopt},
      {Ticks(1000), Ticks(1150), BubbleCause::kWarmUp, Axis::kPipeline},
      {Ticks(4150), Ticks(6300), BubbleCause::kDrain, std::nullopt}};
  EXPECT_EQ(parts[0], first);
  EXPECT_EQ(parts[1], second);
}

// The sums of evaluate() are the sums of the parts, imbalance and dependency taken together.
TEST(IdleParts, AddUpToTheBreakdownOfTheStep) {
  for (int devices = 1; devices <= 4; ++devices)
    for (int microbatches = 1; microbatches <= 6; ++microbatches)
      for (const int latency : {0, 30, 700}) {
        SCOPED_TRACE(testing::Message() << devices << " " << microbatches << " " << latency);
        const GraphBuilder built = one_f_one_b(devices, microbatches, Ticks(latency));
        const SimulatedTimes times = simulate(built.graph, built.prices);
        const Evaluation evaluation = evaluate(built.graph, built.prices, times, {});
        const auto parts = idle_parts(built.graph, times);
        for (std::size_t r = 0; r < parts.size(); ++r) {
          RankBreakdown sums;
          Ticks last;
          for (const IdlePart& part : parts[r]) {
            EXPECT_LT(part.from, part.to);
            EXPECT_LE(last, part.from);
            last = part.to;
            if (part.exposed)
              sums.exposed_communication[static_cast<std::size_t>(*part.exposed)] +=
                  part.to - part.from;
            else
              sums.bubble[static_cast<std::size_t>(part.cause)] += part.to - part.from;
          }
          const RankBreakdown& step = evaluation.ranks[r];
          EXPECT_EQ(sums.exposed_communication, step.exposed_communication);
          const auto bubble = [](const RankBreakdown& b, BubbleCause cause) {
            return b.bubble[static_cast<std::size_t>(cause)];
          };
          for (const BubbleCause cause : {BubbleCause::kWarmUp, BubbleCause::kDrain})
            EXPECT_EQ(bubble(sums, cause), bubble(step, cause)) << name_of(cause);
          EXPECT_EQ(bubble(sums, BubbleCause::kDependency),
                    bubble(step, BubbleCause::kDependency) + bubble(step, BubbleCause::kImbalance));
        }
      }
}

}  // namespace
}  // namespace meshwright
