#include "simulator/variation/variation.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "simulator/engine/simulate.hpp"
#include "simulator/variation/random_numbers.hpp"
#include "tests/simulator/graph_builder.hpp"

namespace meshwright {
namespace {

// Published vectors of Random123 1.14, kat_vectors: philox4x32 10.
TEST(Philox, GivesThePublishedVectors) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// 400,000 numbers: the mean of standard normals has an error of 0.0016, their variance 0.0022.
TEST(FourNormals, HaveMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kBlocks = 100'000;
  for (std::uint64_t block = 0; block < kBlocks; ++block)
    for (const double z : four_normals(3, 5, block)) {
      sum += z;
      squares += z * z;
    }
  EXPECT_NEAR(sum / (4 * kBlocks), 0, 0.007);
  EXPECT_NEAR(squares / (4 * kBlocks), 1, 0.01);
}

constexpr Ticks kPass(1'000'000'000);  // a millisecond

/// Ranks that compute once and then synchronize by a collective without a duration.
GraphBuilder barrier_of(int ranks) {
  GraphBuilder g;
  const WorkId pass = g.add_compute(TaskKind::kForward, kPass);
  std::vector<int> all;
  std::vector<std::vector<TaskId>> after;
  for (int r = 0; r < ranks; ++r) {
    g.add_rank();
    all.push_back(r);
    after.push_back({g.add_task(pass, {.rank = r})});
  }
  g.add_collective(g.add_collective_work(Axis::kData, Ticks(0)), Stream::kData, all, after);
  return g;
}

double share_of_pass(Ticks time) { return ratio(time, kPass); }

// A barrier ends with the slowest of n. Each is exp(s z - s^2/2) of a pass, so the q-quantile of
// the largest is exp(s z(q^(1/n)) - s^2/2), z the inverse normal distribution: n = 8, s = 0.05:
//   q = 0.50: 0.5^(1/8) = 0.917004, z = 1.38524: exp(0.069262 - 0.00125) = 1.07038
//   q = 0.95: 0.95^(1/8) = 0.993609, z = 2.48991: exp(0.124496 - 0.00125) = 1.13116
// With 8,000 draws the standard errors of median and p95 are 0.03 % and 0.06 %.
TEST(Variation, MakesABarrierWaitForTheSlowestOfEight) {
  const GraphBuilder g = barrier_of(8);
  const std::vector<Ticks> steps = draw_steps(g.graph, g.prices, {.jitter = 0.05, .seed = 1}, 8000);
  EXPECT_NEAR(share_of_pass(quantile(steps, 0.5)), 1.07038, 0.0012);
  EXPECT_NEAR(share_of_pass(quantile(steps, 0.95)), 1.13116, 0.0025);
}

// The mean of the larger of two normals is sigma / sqrt(pi): 1 + 0.01 * 0.56419 of a pass, up to
// terms of sigma^2 = 1e-4; 8,000 draws: standard error 0.01 * 0.826 / 89 = 0.0001.
TEST(Variation, MakesABarrierOfTwoSlowerBySigmaOverRootPi) {
  const GraphBuilder g = barrier_of(2);
  const std::vector<Ticks> steps = draw_steps(g.graph, g.prices, {.jitter = 0.01, .seed = 2}, 8000);
  EXPECT_NEAR(share_of_pass(mean(steps)), 1.0056419, 0.0005);
}

// Jitter preserves the mean: one rank, 20,000 draws, sigma 0.2, error 0.2 / 141.
TEST(Variation, KeepsThePriceAsTheMeanOfATask) {
  const GraphBuilder g = barrier_of(1);
  const std::vector<Ticks> steps = draw_steps(g.graph, g.prices, {.jitter = 0.2, .seed = 3}, 20000);
  EXPECT_NEAR(share_of_pass(mean(steps)), 1, 0.005);
}

// Rank 2 takes 1.2 passes, and all wait for it; no jitter, so every draw is the same.
TEST(Variation, LetsAllWaitForAStraggler) {
  const GraphBuilder g = barrier_of(4);
  const Variation slow{.stragglers = {{RankId(2), 1.2}}};
  EXPECT_EQ(draw_steps(g.graph, g.prices, slow, 3),
            std::vector<Ticks>(3, Ticks(kPass.value * 12 / 10)));
}

TEST(Variation, OfNothingIsTheSimulation) {
  const GraphBuilder g =
      pipeline_graph(schedule_of("1f1b", {.devices = 4, .microbatches = 6}),
                     uniform_times(4, Ticks(700), Ticks(800), Ticks(500)),
                     {.bytes = Bytes(1000), .occupancy = Ticks(100), .latency = Ticks(30)});
  EXPECT_EQ(draw_steps(g.graph, g.prices, {}, 1).front(), makespan(simulate(g.graph, g.prices)));
}

TEST(Variation, DependsOnSeedAndNumberOfTheDrawAlone) {
  const GraphBuilder g = barrier_of(5);
  const Variation noise{.jitter = 0.1, .seed = 11};
  const std::vector<Ticks> all = draw_steps(g.graph, g.prices, noise, 50);
  EXPECT_EQ(draw_steps(g.graph, g.prices, noise, 10, 20),
            std::vector<Ticks>(all.begin() + 20, all.begin() + 30));
  EXPECT_NE(draw_steps(g.graph, g.prices, {.jitter = 0.1, .seed = 12}, 50), all);
  EXPECT_NE(all[0], all[1]);
}

TEST(Variation, SlowsComputeOnlyAndSharesTheNoiseOfACollective) {
  GraphBuilder g = barrier_of(2);
  g.prices.back().duration = Ticks(1000);
  std::vector<Ticks> durations;
  vary_durations(g.graph, g.prices, {.stragglers = {{RankId(1), 2.0}}}, 0, durations);
  EXPECT_EQ(durations,
            (std::vector<Ticks>{kPass, kPass * std::int64_t{2}, Ticks(1000), Ticks(1000)}));
  vary_durations(g.graph, g.prices, {.jitter = 0.3, .seed = 5}, 0, durations);
  EXPECT_EQ(durations[2], durations[3]);
  EXPECT_NE(durations[2], Ticks(1000));
  EXPECT_NE(durations[0], durations[1]);
}

// By the definition: at least q of the values are not larger.
TEST(Quantile, IsTheNearestRank) {
  const std::vector<Ticks> values{Ticks(40), Ticks(10), Ticks(30), Ticks(20)};
  EXPECT_EQ(quantile(values, 0.25), Ticks(10));
  EXPECT_EQ(quantile(values, 0.26), Ticks(20));
  EXPECT_EQ(quantile(values, 0.5), Ticks(20));
  EXPECT_EQ(quantile(values, 0.95), Ticks(40));
  EXPECT_EQ(quantile(values, 1), Ticks(40));
}

}  // namespace
}  // namespace meshwright
