#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/engine/simulate.hpp"
#include "simulator/evaluate/evaluate.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

MemoryAmounts only(MemoryClass memory_class, int bytes) {
  MemoryAmounts amounts;
  amounts[memory_class] = Bytes(bytes);
  return amounts;
}

// Weights 100. A forward saves 10 and needs 5 while it runs; a backward needs 20 while it runs and
// frees the 10. In the order F F B B:
//   F: 110 + 5 = 115   F: 120 + 5 = 125   B: 120 + 20 = 140 (peak)   B: 110 + 20 = 130
TEST(PeakMemory, IsTheLargestSumOfHeldAndTransientMemory) {
  GraphBuilder g(1);
  g.graph.ranks[0].resident = only(MemoryClass::kWeights, 100);
  const WorkId forward = g.add_compute(TaskKind::kForward, Ticks(1));
  g.graph.works[forward.index()].acquired = only(MemoryClass::kActivations, 10);
  g.graph.works[forward.index()].transient = only(MemoryClass::kLogits, 5);
  const WorkId backward = g.add_compute(TaskKind::kBackward, Ticks(1));
  g.graph.works[backward.index()].released = only(MemoryClass::kActivations, 10);
  g.graph.works[backward.index()].transient = only(MemoryClass::kWorking, 20);
  for (const WorkId work : {forward, forward, backward, backward}) g.add_task(work, {.rank = 0});

  const std::vector<MemoryAmounts> peaks = peak_memory_by_rank(g.graph);
  ASSERT_EQ(peaks.size(), 1u);
  MemoryAmounts expected = only(MemoryClass::kWeights, 100);
  expected += only(MemoryClass::kActivations, 20);
  expected += only(MemoryClass::kWorking, 20);
  EXPECT_EQ(peaks[0], expected);
}

TEST(PeakMemory, IsWhatIsResidentWhereNothingRuns) {
  GraphBuilder g(1);
  g.graph.ranks[0].resident = only(MemoryClass::kOptimizer, 7);
  EXPECT_EQ(peak_memory_by_rank(g.graph)[0], only(MemoryClass::kOptimizer, 7));
}

// 1F1B holds the activations of at most min(m, p - s) micro-batches on stage s (arXiv 2104.04473).
TEST(PeakMemory, OfOneForwardOneBackwardIsBoundedByThePlaceInThePipeline) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 9; ++m) {
      GraphBuilder g = pipeline_graph(schedule_of("1f1b", {.devices = p, .microbatches = m}),
                                      uniform_times(p, Ticks(2), Ticks(2), Ticks(2)));
      for (Work& work : g.graph.works) {
        if (work.kind == TaskKind::kForward) work.acquired = only(MemoryClass::kActivations, 3);
        if (work.kind == TaskKind::kBackward) work.released = only(MemoryClass::kActivations, 3);
      }
      const std::vector<MemoryAmounts> peaks = peak_memory_by_rank(g.graph);
      for (int s = 0; s < p; ++s)
        EXPECT_EQ(peaks[static_cast<std::size_t>(s)],
                  only(MemoryClass::kActivations, 3 * std::min(m, p - s)));
    }
}

}  // namespace
}  // namespace meshwright
