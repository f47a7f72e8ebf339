#include "core/timeline/evaluation_difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace meshwright {
namespace {

using testing::ElementsAre;

template <class Term>
auto names_of(const std::vector<Term>& terms) {
  std::vector<std::string> names;
  for (const Term& term : terms) names.push_back(term.name);
  return names;
}

template <class Amount>
ComparedTerm<Amount> term(const std::vector<ComparedTerm<Amount>>& terms, const std::string& name) {
  for (const ComparedTerm<Amount>& t : terms)
    if (t.name == name) return t;
  ADD_FAILURE() << "no term " << name;
  return {};
}

/// One class of ranks in a step of 100: 60 of products, 10 of optimizer, 30 of warm-up.
Evaluation first() {
  Evaluation e;
  e.step_time = Ticks(100);
  RankBreakdown rank;
  rank.compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(60);
  rank.optimizer = Ticks(10);
  rank.bubble[static_cast<std::size_t>(BubbleCause::kWarmUp)] = Ticks(30);
  e.ranks = {rank};
  e.multiplicity = {4};
  MemoryAmounts memory;
  memory[MemoryClass::kWeights] = Bytes(50);
  e.peak_memory = {memory};
  return e;
}

/// Two classes of ranks in a step of 90: the products take 62 and 58, and 8 and 12 of tensor
/// communication are exposed; 10 of optimizer, 10 of drain. The second one is fuller.
Evaluation second() {
  Evaluation e;
  e.step_time = Ticks(90);
  RankBreakdown rank;
  rank.optimizer = Ticks(10);
  rank.bubble[static_cast<std::size_t>(BubbleCause::kDrain)] = Ticks(10);
  e.ranks = {rank, rank};
  e.ranks[0].compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(62);
  e.ranks[1].compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(58);
  e.ranks[0].exposed_communication[static_cast<std::size_t>(Axis::kTensor)] = Ticks(8);
  e.ranks[1].exposed_communication[static_cast<std::size_t>(Axis::kTensor)] = Ticks(12);
  e.multiplicity = {2, 2};
  e.peak_memory.resize(2);
  e.peak_memory[0][MemoryClass::kWeights] = Bytes(70);
  e.peak_memory[1][MemoryClass::kWeights] = Bytes(60);
  e.peak_memory[1][MemoryClass::kActivations] = Bytes(30);
  return e;
}

TEST(EvaluationDifference, ComparesMeansOverRanksTermByTerm) {
  const EvaluationDifference d = difference(first(), second());
  EXPECT_EQ(term(d.step, "compute: gemm"),
            (ComparedTerm<Ticks>{"compute: gemm", Ticks(60), Ticks(60)}));
  EXPECT_EQ(term(d.step, "exposed communication: tp").change(), Ticks(10));
  EXPECT_EQ(term(d.step, "bubble: warm-up").change(), Ticks(-30));
  EXPECT_EQ(term(d.step, "bubble: drain").change(), Ticks(10));
  EXPECT_EQ(term(d.causes, "bubble"), (ComparedTerm<Ticks>{"bubble", Ticks(30), Ticks(10)}));
}

TEST(EvaluationDifference, ComparesMemoryOfTheFullestRanks) {
  const EvaluationDifference d = difference(first(), second());
  EXPECT_EQ(term(d.memory, name_of(MemoryClass::kWeights).data()).change(), Bytes(10));
  EXPECT_EQ(term(d.memory, name_of(MemoryClass::kActivations).data()).change(), Bytes(30));
}

// 20 less bubble outweighs 10 more communication. Optimizer and compute do not change.
TEST(EvaluationDifference, NamesWhatSpeaksForAndAgainstTheChange) {
  const StepChangeReasons reasons = reasons_for_change(difference(first(), second()));
  EXPECT_THAT(names_of(reasons.with), ElementsAre("bubble"));
  EXPECT_THAT(names_of(reasons.against), ElementsAre("exposed tp communication"));
}

// Of 100 less bubble, 9 less optimizer is not worth a word; 10 less recomputation is.
TEST(EvaluationDifference, LeavesOutCausesBelowATenthOfTheLargest) {
  EvaluationDifference d;
  d.causes = {{"optimizer", Ticks(19), Ticks(10)},
              {"recomputation", Ticks(20), Ticks(10)},
              {"bubble", Ticks(200), Ticks(100)}};
  EXPECT_THAT(names_of(reasons_for_change(d).with), ElementsAre("bubble", "recomputation"));
}

TEST(EvaluationDifference, OfAPlanAndItselfIsZero) {
  const EvaluationDifference d = difference(second(), second());
  for (const auto& t : d.step) EXPECT_EQ(t.change(), Ticks()) << t.name;
  for (const auto& t : d.memory) EXPECT_EQ(t.change(), Bytes()) << t.name;
  EXPECT_EQ(reasons_for_change(d), StepChangeReasons{});
}

// Three ranks, of which one has 100 of products and two have 99: the mean 99.33 is not whole, and
// neither is that of the bubble, 0.67. The Tick that is left goes to the larger remainder.
TEST(MeanBreakdown, GivesWhatRoundingLeavesToTheLargestRemainder) {
  Evaluation e;
  e.step_time = Ticks(100);
  e.ranks.resize(2);
  e.ranks[0].compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(100);
  e.ranks[1].compute[static_cast<std::size_t>(KernelKind::kGemm)] = Ticks(99);
  e.ranks[1].bubble[static_cast<std::size_t>(BubbleCause::kDrain)] = Ticks(1);
  e.multiplicity = {1, 2};
  const RankBreakdown mean = mean_breakdown(e);
  EXPECT_EQ(mean.compute[static_cast<std::size_t>(KernelKind::kGemm)], Ticks(99));
  EXPECT_EQ(mean.bubble[static_cast<std::size_t>(BubbleCause::kDrain)], Ticks(1));
}

/// Steps of up to 11 days on up to 131,072 ranks.
Evaluation random_evaluation(std::mt19937_64& random) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  Evaluation e;
  e.step_time = Ticks(1 + below(1'000'000'000'000'000'000));
  for (std::int64_t classes = 1 + below(8); classes > 0; --classes) {
    Ticks left = e.step_time;
    RankBreakdown& rank = e.ranks.emplace_back();
    visit_parts(rank, [&](const std::string&, Ticks& part) {
      part = Ticks(below(left.value + 1));
      left -= part;
    });
    rank.optimizer += left;
    e.multiplicity.push_back(static_cast<int>(1 + below(16'384)));
    e.peak_memory.emplace_back()[MemoryClass::kWeights] = Bytes(below(1 << 30));
  }
  return e;
}

TEST(EvaluationDifference, AddsUpAndIsAntisymmetricForRandomSteps) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(testing::Message() << "pair " << i << " of seed 20");
    const Evaluation a = random_evaluation(random), b = random_evaluation(random);
    const EvaluationDifference d = difference(a, b), reverse = difference(b, a);
    Ticks sum_a, sum_b, by_cause;
    for (std::size_t t = 0; t < d.step.size(); ++t) {
      sum_a += d.step[t].a;
      sum_b += d.step[t].b;
      EXPECT_EQ(d.step[t].change(), -reverse.step[t].change());
    }
    for (const auto& cause : d.causes) by_cause += cause.change();
    EXPECT_EQ(sum_a, a.step_time);
    EXPECT_EQ(sum_b, b.step_time);
    EXPECT_EQ(by_cause, b.step_time - a.step_time);
    EXPECT_EQ(reasons_for_change(d).with.size(), reasons_for_change(reverse).with.size());
  }
}

}  // namespace
}  // namespace meshwright
