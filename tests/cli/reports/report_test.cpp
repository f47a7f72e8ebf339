#include "cli/reports/report.hpp"

#include <gtest/gtest.h>

namespace meshwright {
namespace {

TEST(Report, NamesOnlyAxesThatAreSplit) {
  Strategy s;
  EXPECT_EQ(split_text(s), "one device");
  s.degrees = {.data = 16, .pipeline = 8, .chunks = 3, .context = 1, .tensor = 8};
  s.sequence_parallel = true;
  EXPECT_EQ(split_text(s), "TP8 PP8x3 DP16 SP");
}

TEST(Report, GroupsDigitsByThree) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(-123), "-123");
}

TEST(Report, HeadroomIsNegativeWhenAPlanDoesNotFit) {
  PlanFigures f;
  f.peak_memory = Bytes(std::int64_t{90} << 30);
  f.memory_capacity = Bytes(std::int64_t{80} << 30);
  EXPECT_NE(to_text(plan_table({&f, 1})).find("-10 GiB"), std::string::npos);
  f.peak_memory = Bytes(std::int64_t{60} << 30);
  EXPECT_NE(to_text(plan_table({&f, 1})).find("  20 GiB"), std::string::npos);
}

// Two ranks of one position and one of another: the table has the fuller one of the first.
TEST(Report, ShowsTheFullestRankOfEachPosition) {
  std::vector<RankInfo> ranks(3);
  ranks[2].coordinate.pipeline = 1;
  Evaluation e;
  e.memory_capacity = Bytes(100);
  e.peak_memory.resize(3);
  e.peak_memory[0][MemoryClass::kWeights] = Bytes(10);
  e.peak_memory[1][MemoryClass::kWeights] = Bytes(20);
  e.peak_memory[2][MemoryClass::kWeights] = Bytes(30);
  EXPECT_EQ(to_indented_text(memory_table(ranks, e)),
            "  pipeline rank  weights  total  headroom\n"
            "              0     20 B   20 B      80 B\n"
            "              1     30 B   30 B      70 B\n");
}

TEST(Report, CertificateNamesTheBoundsThatPruned) {
  SearchCertificate c;
  c.candidates = 1200;
  c.pruned[static_cast<std::size_t>(PruneReason::kMemory)] = 1000;
  c.pruned[static_cast<std::size_t>(PruneReason::kBound)] = 150;
  c.simulated = 50;
  c.proved_optimal = true;
  EXPECT_EQ(certificate_text(c, Seconds(0.25)),
            "Searched 1,200 candidates in 250 ms: pruned 1,000 by memory, 150 by bound; 50 "
            "simulated; optimal within the searched space and cost model.\n");
}

TEST(Report, CertificateGivesTheGapOfASearchThatWasNotExhaustive) {
  SearchCertificate c;
  c.candidates = 3;
  c.simulated = 2;
  c.pruned[static_cast<std::size_t>(PruneReason::kDominated)] = 1;
  c.gap = 0.034;
  EXPECT_EQ(certificate_text(c, Seconds(0.25)),
            "Searched 3 candidates in 250 ms: pruned 1 by dominance; 2 simulated; stopped "
            "early: the optimum is at most 3.4 % faster.\n");
}

TEST(Report, CertificateNamesTheChangesThatMadePlan1Faster) {
  SearchCertificate c;
  c.candidates = c.simulated = 1;
  c.proved_optimal = true;
  c.refined_by = {"--shard-ranks 8", "one block from stage 0 to 1"};
  EXPECT_EQ(
      certificate_text(c, Seconds(0.25)),
      "Searched 1 candidates in 250 ms: 1 simulated; optimal within the searched space and "
      "cost model.\nPlan 1 was then made faster by --shard-ranks 8, one block from stage 0 to "
      "1.\n");
}

// The mean over ranks and the busiest rank, of the period, wherever a bubble is printed.
TEST(Report, LabelsBothBubbles) {
  PlanFigures f;
  f.bubble_of_period = 0.051;
  f.busiest_rank_bubble = 0.036;
  f.bubble_of_makespan = 0.07;
  EXPECT_EQ(bubble_text(f), "5.1 % (busiest rank 3.6 %)");
  EXPECT_NE(
      to_text(figures_list(f)).find("  bubble        5.1 % (busiest rank 3.6 %) of the period\n"),
      std::string::npos);
  const std::string table = to_text(plan_table({&f, 1}));
  EXPECT_NE(table.find("  bubble  busiest  exposed comm  "), std::string::npos);
  EXPECT_NE(table.find("   5.1 %    3.6 %  "), std::string::npos);
  EXPECT_NE(table.find("bubble: share of the period, mean over ranks and busiest rank"),
            std::string::npos);
}

// 1.0 s on TP2 DP4 with an option, and 1.02 s on DP8 alone; the ranges overlap.
TEST(Report, NamesTheSimplestOfPlansThatAreEqualWithinTheError) {
  std::vector<PlanFigures> plans(2);
  plans[0].strategy.degrees = {.data = 4, .tensor = 2};
  plans[0].strategy.model_parallelism.tensor_overlap = true;
  plans[1].strategy.degrees = {.data = 8};
  plans[0].step_time = Ticks(1'000'000);
  plans[1].step_time = Ticks(1'020'000);
  for (PlanFigures& plan : plans)
    plan.range = StepTimeRange{.p10 = plan.step_time, .p90 = plan.step_time * std::int64_t{2}};
  EXPECT_NE(to_text(plan_table(plans))
                .find("Plans 1 to 2 are equal within the error of the prediction; "
                      "plan 2, 2.0 % slower, is the simplest.\n"),
            std::string::npos);
  std::swap(plans[0].strategy, plans[1].strategy);
  EXPECT_NE(to_text(plan_table(plans)).find("the error of the prediction.\n"), std::string::npos);
}

TEST(Report, NamesTheCostModelAndItsValidation) {
  EXPECT_EQ(cost_model_text("roofline model of X", "unvalidated"),
            "Cost model: roofline model of X; unvalidated.\n");
}

// Where a problem is can be a file name, and file names are bytes.
TEST(Report, ProblemsAsJsonReplaceWhatIsNotUtf8) {
  EXPECT_EQ(problems_json({}), "[]");
  const std::vector<Diagnostic> problems{{"b\xff.json#/strategy", "wrong", "mend it"}};
  EXPECT_EQ(
      problems_json(problems),
      "[{\"where\":\"b\xef\xbf\xbd.json#/strategy\",\"what\":\"wrong\",\"hint\":\"mend it\"}]");
}

}  // namespace
}  // namespace meshwright
