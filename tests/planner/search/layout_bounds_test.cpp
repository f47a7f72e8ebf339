#include "planner/search/layout_bounds.hpp"

#include <gtest/gtest.h>

#include "planner/search/layer_times.hpp"
#include "tests/planner/search/small_jobs.hpp"

namespace meshwright {
namespace {

LayerCosts costs_of(const SmallJob& small, const Strategy& strategy,
                    const LayerCosts* plain = nullptr) {
  return layer_costs(strategy, small.model, small.cluster, *small.cost_model, plain);
}

SmallJob job_with(const char* model) {
  SmallJob small(model_from_config(find_model(model)), kPlenty,
                 {.gpus = 64, .global_batch = 256, .sequence_length = 4096});
  small.cluster.groups.front().count = 8;
  return small;
}

/// Dense, experts, experts with shared ones and latent attention.
class LayoutBound : public testing::TestWithParam<const char*> {
 protected:
  LayoutBound() : small_(job_with(GetParam())), job_(small_.job()), space_(small_.space()) {}

  SmallJob small_;
  const SearchJob job_;
  SearchSpace space_;
};
INSTANTIATE_TEST_SUITE_P(DenseAndExperts, LayoutBound,
                         testing::Values("llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"));

/// Every n-th layout.
template <class Visit>
void visit_some(const SearchSpace& space, const Visit& visit) {
  constexpr std::size_t kVisited = 400;
  const std::size_t step = std::max<std::size_t>(1, space.branches.size() / kVisited);
  for (std::size_t i = 0; i < space.branches.size(); i += step) visit(space.branches[i].layout);
}

TEST_P(LayoutBound, IsTheTimeOfThePricedLayers) {
  LayoutBounds bounds(job_);
  visit_some(space_, [&](const Layout& layout) {
    const LayerPasses priced = costs_of(small_, strategy_of_layers(job_, layout)).passes;
    ASSERT_EQ(bounds.times_of(layout),
              (ModelTimes{total_time(priced, false), total_time(without_ends(priced), false)}))
        << testing::PrintToString(std::tuple(layout.degrees.tensor, layout.degrees.context,
                                             layout.degrees.expert, layout.degrees.expert_tensor,
                                             layout.micro_batch, layout.sequence_parallel));
  });
}

TEST_P(LayoutBound, IsNeverAboveOverlappedLayers) {
  SmallJob small = job_with(GetParam());
  small.fixed.model_parallelism.routing.overlap = true;
  // Exchanges between nodes that kernels cannot hide.
  small.cluster.nodes.begin()->second.port_bandwidth = BytesPerSecond(1e8);
  small.cost_model = make_device_cost_model(small.cluster);
  const SearchJob job = small.job();
  LayoutBounds bounds(job);
  int below = 0;
  visit_some(space_, [&](const Layout& layout) {
    const Ticks priced = total_time(costs_of(small, strategy_of_layers(job, layout)).passes, false);
    ASSERT_LE(bounds.times_of(layout).all, priced);
    below += bounds.times_of(layout).all < priced ? 1 : 0;
  });
  EXPECT_EQ(below > 0, std::string(GetParam()) != "llama-3.1-8b");
}

TEST_P(LayoutBound, CostsOfRecomputedOperatorsFollowFromThoseOfTheLayer) {
  visit_some(space_, [&](const Layout& layout) {
    const LayerCosts plain = costs_of(small_, strategy_of_layers(job_, layout));
    for (const Recompute& recompute : space_.recomputes) {
      if (!recomputes_operators(recompute.kind)) continue;
      const Strategy strategy = strategy_of_layers(job_, layout, recompute);
      const LayerCosts alone = costs_of(small_, strategy),
                       derived = costs_of(small_, strategy, &plain);
      ASSERT_EQ(derived.passes, alone.passes);
      ASSERT_EQ(derived.memory, alone.memory);
    }
  });
}

}  // namespace
}  // namespace meshwright
