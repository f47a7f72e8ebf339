// Properties of every plan, on random plans (fixed seeds) over all axes and options.
#include <gtest/gtest.h>

#include <random>

#include "core/lowering/lower.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr int kBlocks = 8;

class PlanSource {
 public:
  explicit PlanSource(unsigned seed) : random_(seed) {}

  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[random_() % values.size()];
  }
  bool coin() { return random_() % 2 == 0; }

  Strategy strategy(bool experts) {
    ParallelDegrees d;
    d.tensor = one_of({1, 2, 4});
    d.context = experts ? 1 : one_of({1, 1, 2, 4});
    d.pipeline = one_of({1, 2, 4});
    d.chunks = d.pipeline > 1 ? one_of({1, 2}) : 1;
    d.data = one_of({1, 2, 4});
    if (experts) {
      d.expert = one_of({1, 2, 4});
      d.expert_tensor = one_of({1, 2});
    }
    Strategy s = strategy_of(d, d.pipeline * one_of({1, 2}));
    s.sequence_parallel = d.tensor > 1 && coin();
    s.zero = one_of({0, 1});
    s.recompute.kind = one_of({RecomputeKind::kNone, RecomputeKind::kFull});
    ModelParallelism& m = s.model_parallelism;
    m.tensor_overlap = s.sequence_parallel && coin();
    m.context = one_of(
        {ContextAlgorithm::kAllGather, ContextAlgorithm::kRing, ContextAlgorithm::kAllToAll});
    if (experts) {
      const int choice = one_of({0, 1, 2});
      if (choice == 1) m.routing.capacity = 1.25;
      if (choice == 2) m.routing.imbalance = 1.5;
      m.routing.fp8_dispatch = coin();
      m.routing.node_limit = one_of({0, 2});
    }
    m.order = *rank_order_from_text(one_of({"tp-cp-ep-dp-pp", "cp-tp-ep-dp-pp", "dp-cp-ep-tp-pp",
                                            "pp-tp-cp-ep-dp", "tp-pp-cp-ep-dp", "ep-tp-dp-cp-pp"}));
    return s;
  }

 private:
  std::mt19937 random_;
};

std::string describe(const Strategy& s) {
  const ParallelDegrees& d = s.degrees;
  return ::testing::PrintToString(std::vector<int>{d.tensor, d.context, d.expert, d.expert_tensor,
                                                   d.data, d.pipeline, d.chunks, s.zero}) +
         " " + to_text(s.model_parallelism.order) + " " +
         std::string(name_of(s.model_parallelism.context));
}

TEST(RandomPlans, TakeAsLongFoldedAsWithAllRanks) {
  const Cluster cluster = cluster_of(16, 4);
  const auto costs = make_device_cost_model(cluster);
  int lowered = 0, refused = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    PlanSource source(seed);
    const bool experts = source.coin();
    const ModelGraph model = experts ? mixture(kBlocks) : gpt({.blocks = kBlocks, .heads = 16});
    const Strategy s = source.strategy(experts);
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ": " << describe(s));
    const Plan plan = plan_of(s, kBlocks);
    if (!check_plan(plan, model, cluster).empty()) {
      ++refused;
      continue;
    }
    ++lowered;
    const TaskGraph folded = lower(plan, model, cluster, {.check_each_pass = true});
    const TaskGraph all =
        lower(plan, model, cluster, {.ranks = RankSet::kAll, .check_each_pass = true});
    const auto step = [&](const TaskGraph& graph) {
      return makespan(simulate(graph, price_works(graph.parts, graph.works, *costs)));
    };
    ASSERT_EQ(step(folded), step(all));
  }
  EXPECT_GT(lowered, 150);
  EXPECT_GT(refused, 10);  // some orders split stages or replicas
}

/// Forward and backward bytes of one axis in all blocks of one micro-batch on one rank.
std::int64_t bytes_of(const TaskGraph& graph, Axis axis) {
  std::int64_t sum = 0;
  for (const WorkPart& part : graph.parts) {
    if (part.name != "block.F" && part.name != "block.B") continue;
    for (const Step& step : part.steps)
      if (const auto* c = std::get_if<Collective>(&step); c != nullptr && c->axis == axis)
        sum += c->bytes.value * c->rounds;
  }
  return sum;
}

// A block of GPT on 2 x 128 tokens of 64 values in bf16, t tensor and c context ranks, N = 256 / c
// tokens per rank, S = 128 N bytes of one activation:
//   tensor    4 all-reduces of S; with sequence parallelism 4 gathers and scatters forward, 4
//             backward, and 2 gathers of inputs again: 10 S
//   context   KV of one rank is 2 S / t. All-gather: c KV gathered twice and scattered once:
//             6 c S / t. Ring: (c - 1) + 2 (c - 1) + 1 times: (3 c - 2) 2 S / t. All-to-all: twice
//             Q + KV + O: 8 S / t.
TEST(RandomPlans, SendTheBytesOfTheClosedForms) {
  const ModelGraph model = gpt({.blocks = kBlocks, .heads = 16});
  const Cluster cluster = cluster_of(16, 4);
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Strategy s = PlanSource(seed).strategy(false);
    const Plan plan = plan_of(s, kBlocks);
    if (!check_plan(plan, model, cluster).empty()) continue;
    SCOPED_TRACE(::testing::Message() << "seed " << seed << ": " << describe(s));
    const TaskGraph graph = lower(plan, model, cluster, {.check_each_pass = true});
    const std::int64_t t = s.degrees.tensor, c = s.degrees.context;
    const std::int64_t activation = 256 / c * 64 * 2;
    const std::int64_t tensor = t == 1 ? 0 : (s.sequence_parallel ? 10 : 4) * activation;
    EXPECT_EQ(bytes_of(graph, Axis::kTensor), tensor);
    std::int64_t context = 0;
    switch (s.model_parallelism.context) {
      case ContextAlgorithm::kAllGather:
        context = 6 * c * activation / t;
        break;
      case ContextAlgorithm::kRing:
        context = (3 * c - 2) * 2 * activation / t;
        break;
      case ContextAlgorithm::kAllToAll:
        context = 8 * activation / t;
        break;
    }
    EXPECT_EQ(bytes_of(graph, Axis::kContext), c == 1 ? 0 : context);
  }
}

}  // namespace
}  // namespace meshwright
