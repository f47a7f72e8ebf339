#include "simulator/network/max_min_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace meshwright {
namespace {

constexpr double kUnlimited = 1e9;

SharingProblem problem_of(const std::vector<double>& capacities,
                          const std::vector<std::vector<std::int32_t>>& routes,
                          const std::vector<double>& limits = {}) {
  SharingProblem problem;
  for (const double capacity : capacities) problem.capacities.emplace_back(capacity);
  problem.route_begin.push_back(0);
  for (std::size_t f = 0; f < routes.size(); ++f) {
    problem.rate_limits.emplace_back(limits.empty() ? kUnlimited : limits[f]);
    problem.routes.insert(problem.routes.end(), routes[f].begin(), routes[f].end());
    problem.route_begin.push_back(static_cast<std::int32_t>(problem.routes.size()));
  }
  return problem;
}

std::vector<double> rates_of(const SharingProblem& problem) {
  std::vector<double> rates;
  for (const BytesPerSecond rate : max_min_rates(problem)) rates.push_back(rate.value);
  return rates;
}

std::vector<double> load_of(const SharingProblem& problem, const std::vector<double>& rates) {
  std::vector<double> load(problem.capacities.size(), 0.0);
  for (std::size_t f = 0; f < rates.size(); ++f)
    for (auto r = problem.route_begin[f]; r < problem.route_begin[f + 1]; ++r)
      load[static_cast<std::size_t>(problem.routes[static_cast<std::size_t>(r)])] += rates[f];
  return load;
}

bool is_feasible(const SharingProblem& problem, const std::vector<double>& rates) {
  for (std::size_t f = 0; f < rates.size(); ++f)
    if (rates[f] > problem.rate_limits[f].value) return false;
  const std::vector<double> load = load_of(problem, rates);
  for (std::size_t l = 0; l < load.size(); ++l)
    if (load[l] > problem.capacities[l].value) return false;
  return true;
}

/// Independent of the implementation: raises all flows together as far as trial and error allows,
/// then freezes those that cannot be raised alone.
std::vector<double> rates_by_trying(const SharingProblem& problem) {
  const std::size_t count = problem.rate_limits.size();
  std::vector<double> rates(count, 0.0);
  std::vector<bool> fixed(count, false);
  const auto raised = [&](double level) {
    std::vector<double> tried = rates;
    for (std::size_t f = 0; f < count; ++f)
      if (!fixed[f]) tried[f] = level;
    return tried;
  };
  while (std::find(fixed.begin(), fixed.end(), false) != fixed.end()) {
    double low = 0, high = 2 * kUnlimited;
    for (int step = 0; step < 200; ++step) {
      const double middle = (low + high) / 2;
      (is_feasible(problem, raised(middle)) ? low : high) = middle;
    }
    rates = raised(low);
    for (std::size_t f = 0; f < count; ++f) {
      std::vector<double> alone = rates;
      alone[f] *= 1 + 1e-9;
      if (!is_feasible(problem, alone)) fixed[f] = true;
    }
  }
  return rates;
}

TEST(MaxMinSharing, HalvesALinkBetweenTwoFlows) {
  EXPECT_EQ(rates_of(problem_of({10}, {{0}, {0}})), (std::vector<double>{5, 5}));
}

// A fast flow gets what a slow one leaves over.
TEST(MaxMinSharing, GivesWhatALimitedFlowLeavesToTheOthers) {
  EXPECT_EQ(rates_of(problem_of({10}, {{0}, {0}}, {2, 100})), (std::vector<double>{2, 8}));
}

// Bertsekas and Gallager's kind of example. Links of 10 and 4; flow 0 over both, 1 over the first,
// 2 over the second. The second link is full at 2 each; flow 1 takes the other 8 of the first.
TEST(MaxMinSharing, FillsTheTightestLinkFirst) {
  EXPECT_EQ(rates_of(problem_of({10, 4}, {{0, 1}, {0}, {1}})), (std::vector<double>{2, 8, 2}));
}

// Three links in a row, one flow over all of them and one over each: all get half.
TEST(MaxMinSharing, LetsALongFlowHaveAsMuchAsShortOnes) {
  EXPECT_EQ(rates_of(problem_of({1, 1, 1}, {{0, 1, 2}, {0}, {1}, {2}})),
            (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
}

TEST(MaxMinSharing, CountsALinkTwiceForAFlowThatUsesItTwice) {
  EXPECT_EQ(rates_of(problem_of({12}, {{0, 0}, {0}})), (std::vector<double>{4, 4}));
}

TEST(MaxMinSharing, KeepsALimitToTheLastBitWhereItEqualsTheShare) {
  const double limit = 25e9 * (1 + 4e-16);  // a bit above the capacity, as rounding may have it
  EXPECT_EQ(rates_of(problem_of({25e9}, {{0}}, {limit})), (std::vector<double>{limit}));
}

// One link of 12. Flow 0 takes twice its rate of it, flow 1 once: 2 r + r = 12, so both have 4.
// With a second link of 1 that flow 0 fills at a tenth of its rate, it would have 10: no bound.
TEST(MaxMinSharing, WeighsAFlowByWhatItTakesOfEachLink) {
  SharingProblem problem = problem_of({12, 1}, {{0, 1}, {0}});
  problem.shares = {2, 0.1, 1};
  EXPECT_EQ(rates_of(problem), (std::vector<double>{4, 4}));
}

// Uses of 2 are the same as naming the link twice.
TEST(MaxMinSharing, TakesAShareOfTwoAsTwoUses) {
  std::mt19937 random(7);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> capacities(4);
    for (double& capacity : capacities) capacity = 1 + upto(30);
    std::vector<std::vector<std::int32_t>> once(5), twice(5);
    std::vector<double> shares;
    for (std::size_t f = 0; f < once.size(); ++f)
      for (std::int32_t l = 0; l < 4; ++l) {
        const int uses = upto(3);
        if (uses == 0) continue;
        once[f].push_back(l);
        shares.push_back(uses);
        for (int u = 0; u < uses; ++u) twice[f].push_back(l);
      }
    SharingProblem weighted = problem_of(capacities, once);
    weighted.shares = shares;
    const std::vector<double> rates = rates_of(weighted);
    const std::vector<double> expected = rates_of(problem_of(capacities, twice));
    for (std::size_t f = 0; f < rates.size(); ++f)  // summed in another order
      EXPECT_NEAR(rates[f], expected[f], 1e-12 * expected[f]) << "round " << round;
  }
}

TEST(MaxMinSharing, OfNothingIsNothing) { EXPECT_TRUE(rates_of(problem_of({1}, {})).empty()); }

// Random small networks (fixed seed): the same rates as by trial and error, and the criterion of
// max-min fairness: every flow has its limit, or crosses a full link on which no flow has more.
TEST(MaxMinSharing, EqualsTryingOnRandomNetworks) {
  std::mt19937 random(20240607);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(testing::Message() << "seed 20240607, round " << round);
    std::vector<double> capacities(static_cast<std::size_t>(1 + upto(6)));
    for (double& capacity : capacities) capacity = 1 + upto(40);
    std::vector<std::vector<std::int32_t>> routes(static_cast<std::size_t>(1 + upto(8)));
    std::vector<double> limits;
    for (auto& route : routes) {
      for (std::int32_t l = 0; l < static_cast<std::int32_t>(capacities.size()); ++l)
        if (upto(3) == 0) route.push_back(l);
      limits.push_back(upto(2) == 0 ? 1 + upto(20) : 1000);
    }
    const SharingProblem problem = problem_of(capacities, routes, limits);
    const std::vector<double> rates = rates_of(problem), tried = rates_by_trying(problem);
    const std::vector<double> load = load_of(problem, rates);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      EXPECT_NEAR(rates[f], tried[f], 1e-6 * tried[f]);
      bool held_back = rates[f] == limits[f];
      for (const std::int32_t link : routes[f]) {
        const auto l = static_cast<std::size_t>(link);
        double most = 0;
        for (std::size_t g = 0; g < rates.size(); ++g)
          if (std::find(routes[g].begin(), routes[g].end(), link) != routes[g].end())
            most = std::max(most, rates[g]);
        held_back |= load[l] > capacities[l] * (1 - 1e-9) && rates[f] > most * (1 - 1e-9);
      }
      EXPECT_TRUE(held_back) << "flow " << f;
    }
    for (std::size_t l = 0; l < load.size(); ++l) EXPECT_LE(load[l], capacities[l] * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace meshwright
