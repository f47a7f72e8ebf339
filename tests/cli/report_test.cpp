#include "cli/report.hpp"

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
  EXPECT_NE(plan_table({&f, 1}).find("-10 GiB"), std::string::npos);
  f.peak_memory = Bytes(std::int64_t{60} << 30);
  EXPECT_NE(plan_table({&f, 1}).find("  20 GiB"), std::string::npos);
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
  EXPECT_EQ(memory_table(ranks, e),
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
            "Searched 1,200 candidates in 250 ms: pruned 1,000 by memory, 150 by bound, 50 "
            "simulated; proved optimal among them.\n");
}

}  // namespace
}  // namespace meshwright
