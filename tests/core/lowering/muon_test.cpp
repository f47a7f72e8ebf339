#include "core/lowering/muon.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/lowering/lower.hpp"
#include "core/operators/muon.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing::UnorderedElementsAre;
using namespace testing_models;

// H = 64, A = X X^T [64, 64]: 2 64 64 256 operations, A A: 2 64^3, B X as the first. The sums read
// two matrices of [64, 64] and of [64, 256] and write one.
TEST(NewtonSchulz, MultipliesByTheSmallerSide) {
  for (const bool is_tall : {false, true}) {
    const std::vector<Kernel> kernels =
        newton_schulz_kernels(is_tall ? 256 : 64, is_tall ? 64 : 256, Dtype::kBf16);
    ASSERT_EQ(kernels.size(), 4U);
    EXPECT_EQ(kernels[0].flops, Flops(2.0 * 64 * 64 * 256));
    EXPECT_EQ(kernels[1].flops, Flops(2.0 * 64 * 64 * 64));
    EXPECT_EQ(kernels[2].flops, Flops(2.0 * 64 * 64 * 256));
    EXPECT_EQ(kernels[3].memory_traffic, Bytes(2 * 3 * (64 * 64 + 64 * 256)));
  }
}

Strategy with_muon(ParallelDegrees degrees, int zero = 0) {
  Strategy s = strategy_of(degrees, 1);
  s.optimizer = OptimizerKind::kMuon;
  s.zero = zero;
  return s;
}

/// Repetitions of the optimizer's parts on rank 0, by name.
std::map<std::string, int> parts_of_update(const TaskGraph& graph) {
  std::map<std::string, int> counts;
  for (const Task& task : graph.tasks)
    if (task.kind == TaskKind::kOptimizer && task.rank == 0)
      for (const WorkPartUse& use : graph.works[task.work.index()].parts)
        counts[graph.parts[static_cast<std::size_t>(use.part)].name] += use.count;
  return counts;
}

// Per block: queries, keys, values and the attention's output [64, 64], and two layers of the MLP.
TEST(MuonUpdate, OrthogonalizesTheMatricesOfItsBlocks) {
  const TaskGraph graph = lower(plan_of(with_muon({}), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  EXPECT_THAT(parts_of_update(graph),
              UnorderedElementsAre(
                  Pair("optimizer", 1), Pair("muon 64 x 64", 16), Pair("muon 64 x 256", 4),
                  Pair("muon 256 x 64", 4), Pair("newton-schulz 64 x 64", 5 * 16),
                  Pair("newton-schulz 64 x 256", 5 * 4), Pair("newton-schulz 256 x 64", 5 * 4)));
  const TaskGraph staged =
      lower(plan_of(with_muon({.pipeline = 2}), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  EXPECT_EQ(parts_of_update(staged)["newton-schulz 64 x 64"], 5 * 8);
}

TEST(MuonUpdate, DistributesMatricesOverTheShardsOfZero) {
  const TaskGraph graph =
      lower(plan_of(with_muon({.data = 4}, 1), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  const std::map<std::string, int> parts = parts_of_update(graph);
  EXPECT_EQ(parts.at("newton-schulz 64 x 64"), 5 * 4);
  EXPECT_EQ(parts.at("newton-schulz 64 x 256"), 5);
}

TEST(MuonUpdate, GathersTheUpdatesOfTensorRanks) {
  const TaskGraph graph =
      lower(plan_of(with_muon({.tensor = 2}), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  std::vector<std::string> gathered;
  for (const WorkPart& part : graph.parts)
    if (part.name == "muon 64 x 256")
      for (const Step& step : part.steps)
        if (const auto* c = std::get_if<Collective>(&step)) {
          gathered.emplace_back(name_of(c->kind));
          EXPECT_EQ(c->axis, Axis::kTensor);
          EXPECT_EQ(c->bytes, Bytes(2 * 64 * 256));
          EXPECT_EQ(c->group.ranks, 2);
        }
  EXPECT_THAT(gathered, ElementsAre("all-gather"));
}

// Two of four experts per rank: up [64, 128] and down [128, 64].
TEST(MuonUpdate, OrthogonalizesEveryExpertOfItsRank) {
  const TaskGraph graph =
      lower(plan_of(with_muon({.data = 2, .expert = 2}), 3), mixture(3), cluster_of(1, 4));
  EXPECT_THAT(
      parts_of_update(graph),
      UnorderedElementsAre(Pair("optimizer", 1), Pair("muon 64 x 128", 2 * 3),
                           Pair("muon 128 x 64", 2 * 3), Pair("newton-schulz 64 x 128", 5 * 2 * 3),
                           Pair("newton-schulz 128 x 64", 5 * 2 * 3)));
}

// Some devices have no bf16.
TEST(MuonUpdate, MultipliesInThePrecisionOfTheTraining) {
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16}) {
    Strategy s = with_muon({});
    s.dtype = dtype;
    const TaskGraph graph = lower(plan_of(s, 4), gpt({.blocks = 4}), cluster_of(1, 4));
    int products = 0;
    for (const WorkPart& part : graph.parts) {
      if (!part.name.starts_with("newton-schulz")) continue;
      for (const Step& step : part.steps) {
        EXPECT_EQ(std::get<Kernel>(step).dtype, dtype);
        ++products;
      }
    }
    EXPECT_EQ(products, 3 * 4);
  }
}

TEST(MuonUpdate, IsNotAddedToOtherOptimizers) {
  const TaskGraph graph =
      lower(plan_of(strategy_of({}, 1), 4), gpt({.blocks = 4}), cluster_of(1, 4));
  EXPECT_THAT(parts_of_update(graph), ElementsAre(Pair("optimizer", 1)));
}

}  // namespace
}  // namespace meshwright
