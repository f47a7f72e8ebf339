#include "simulator/variation/all_ranks.hpp"

#include <gtest/gtest.h>

#include <random>

#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/shared_links.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/core/tiny_models.hpp"

namespace meshwright {
namespace {

using namespace testing_models;

constexpr int kBlocks = 8;

struct RandomJob {
  Cluster cluster;
  Strategy strategy;
  std::vector<Straggler> stragglers;
};

/// Nodes of 4 devices that share 1, 2 or 4 ports, below switches that are too thin, or rails.
RandomJob random_job(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](std::initializer_list<int> values) {
    return values.begin()[random() % values.size()];
  };
  RandomJob job;
  ParallelDegrees d;
  d.tensor = one_of({1, 2, 4});
  d.pipeline = one_of({1, 2, 4});
  d.chunks = d.pipeline > 1 ? one_of({1, 2}) : 1;
  d.context = one_of({1, 1, 2});
  d.data = one_of({2, 4, 8});
  job.strategy = strategy_of(d, d.pipeline * one_of({1, 2}));
  job.strategy.zero = one_of({0, 1, 2, 3});
  if (job.strategy.zero >= 2 && d.pipeline > 1) job.strategy.zero = 1;
  const int ranks = d.tensor * d.pipeline * d.context * d.data;
  job.cluster = cluster_of(std::max(4, ranks), 4);
  NodeModel& node = job.cluster.nodes.begin()->second;
  node.ports = one_of({1, 2, 4});
  job.cluster.fabric.rails = node.ports > 1 && one_of({0, 1}) == 1;
  if (one_of({0, 1}) == 1) job.cluster.fabric.levels = {{.nodes = 2, .oversubscription = 4}};
  if (one_of({0, 1}) == 1) job.cluster.fabric.oversubscription = 3;
  for (int s = one_of({0, 1, 1, 2, 5}); s > 0; --s) {
    const RankId rank(static_cast<std::int32_t>(random() % static_cast<unsigned>(ranks)));
    const double factor = one_of({2, 2, 3}) / 2.0 + 0.25;
    if (std::none_of(job.stragglers.begin(), job.stragglers.end(),
                     [&](const Straggler& other) { return other.rank == rank; }))
      job.stragglers.push_back({rank, factor});
  }
  return job;
}

// On random jobs, the times of every rank are those of a simulation of the graph of all ranks,
// with and without shared links, and equal replicas are not simulated twice.
TEST(AllRanks, HaveTheTimesOfTheGraphOfAllRanks) {
  int lowered = 0, contended = 0;
  std::size_t simulated = 0, all_tasks = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    const RandomJob job = random_job(seed);
    const ModelGraph model = gpt({.blocks = kBlocks, .heads = 16});
    const Plan plan = plan_of(job.strategy, kBlocks);
    if (!check_plan(plan, model, job.cluster).empty()) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ++lowered;
    const auto costs = make_device_cost_model(job.cluster);
    const TaskGraph graph = lower(plan, model, job.cluster, {.ranks = RankSet::kAll});
    const auto prices = price_works(graph.parts, graph.works, *costs);
    const ReplicatedGraph all = lower_replicated(plan, model, job.cluster);
    ASSERT_EQ(all.ranks, graph.ranks);
    std::vector<Ticks> durations;
    vary_durations(graph, prices, {.stragglers = job.stragglers}, 0, durations);
    SimulatedTimes alone;
    simulate(graph, prices, durations, alone);
    EXPECT_EQ(times_of_all_ranks(all, simulate_replicas(all, prices, job.stragglers, nullptr)),
              alone);

    const LinkNetwork network(job.cluster, static_cast<int>(graph.ranks.size()));
    const SimulatedTimes shared =
        simulate_with_contention(graph, prices, durations, links_of(graph, network));
    const SimulatedReplicas replicas = simulate_replicas(all, prices, job.stragglers, &network);
    EXPECT_EQ(times_of_all_ranks(all, replicas), shared);
    contended += makespan(shared) > makespan(alone) ? 1 : 0;
    simulated += replicas.graph.graph.tasks.size();
    all_tasks += graph.tasks.size();
  }
  EXPECT_GT(lowered, 80);
  EXPECT_GT(contended, 30);
  EXPECT_LT(simulated, all_tasks);
}

// Two replicas of two ranks without shared links: with one slow rank they differ, without they do
// not.
TEST(AllRanks, AreSimulatedOnceWhereNothingTellsThemApart) {
  const Cluster cluster = cluster_of(4, 4);
  const auto costs = make_device_cost_model(cluster);
  const ModelGraph model = gpt({.blocks = kBlocks, .heads = 16});
  const Plan plan = plan_of(strategy_of({.data = 2, .pipeline = 2}, 2), kBlocks);
  const ReplicatedGraph all = lower_replicated(plan, model, cluster);
  const auto prices = price_works(all.folded.graph.parts, all.folded.graph.works, *costs);
  EXPECT_EQ(simulate_replicas(all, prices, {}, nullptr).classes.sizes,
            std::vector<std::int64_t>{2});
  const std::vector<Straggler> slow{{RankId(1), 1.5}};
  EXPECT_EQ(simulate_replicas(all, prices, slow, nullptr).classes.sizes,
            (std::vector<std::int64_t>{1, 1}));
}

}  // namespace
}  // namespace meshwright
