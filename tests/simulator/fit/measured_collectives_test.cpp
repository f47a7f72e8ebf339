#include "simulator/fit/measured_collectives.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/complaints.hpp"
#include "tests/simulator/reference_systems.hpp"

namespace meshwright {
namespace {

using namespace meshwright::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint_about(const std::string& row) {
  return complaints_of(
      [&] { read_measured_collectives("op,ranks,bytes,time_us\n" + row + "\n", "x.csv", ""); });
}

TEST(MeasuredCollectivesFile, SkipsWhatItDoesNotPriceAndSaysSo) {
  const MeasuredCollectives measured = read_measured_collectives(
      "device,topology,op,ranks,bytes,time_us,note\n"
      "A,\"1x8 NVSwitch, NVLS\",all_reduce,8,2097152,50.5,\n"
      "A,1x8 NVSwitch,all_gather,8,1024,9,\n"
      "A,2x8 NVSwitch,all_gather,16,1024,90,\n"
      "A,1x8 NVSwitch,send_recv,2,1024,9,\n"
      "A,1x8 NVSwitch,all_reduce,8,1024,9,one-shot (not NCCL)\n"
      "B,1x8 NVSwitch,all_reduce,8,1024,9,\n",
      "x.csv", "A");
  ASSERT_EQ(measured.rows.size(), 2u);
  EXPECT_EQ(measured.rows[0].collective.kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(measured.rows[0].collective.bytes, Bytes(1 << 21));
  EXPECT_EQ(measured.rows[0].collective.group, (GroupShape{.ranks = 8}));
  EXPECT_DOUBLE_EQ(measured.rows[0].time.value, 50.5e-6);
  EXPECT_GT(measured.rows[0].weight, measured.rows[1].weight);
  EXPECT_THAT(measured.notes, ElementsAre(HasSubstr("1 rows skipped: collectives across nodes"),
                                          HasSubstr("1 rows skipped: kernels other than NCCL's"),
                                          HasSubstr("1 rows skipped: operations other than")));
}

TEST(MeasuredCollectivesFile, NamesLineColumnAndValueOfMistakes) {
  EXPECT_THAT(complaint_about("all_reduce,2.5,1024,9"),
              HasSubstr("x.csv:2: invalid value '2.5' for 'ranks': expected a whole number"));
  EXPECT_THAT(complaint_about("all_reduce,8,-4,9"),
              HasSubstr("x.csv:2: invalid value '-4' for 'bytes'"));
  EXPECT_THAT(complaint_about("all_reduce,8,1024,"),
              HasSubstr("x.csv:2: missing value of 'time_us'"));
}

// Rows made by the model itself are fitted, and predicted when held back; rows of more devices than
// a node are left out.
TEST(DeviceCollectivesFit, ReportsErrorsByOperation) {
  ReferenceSystem system = dgx_h100();
  system.device.collectives = plain_collective_parameters();
  system.device.collectives->nvls.bandwidth = 1.1;
  const Cluster truth = cluster_of(system, 1);
  std::vector<MeasuredCollective> rows;
  for (const int ranks : {2, 4, 8})
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllToAll})
      for (int exponent = 20; exponent <= 30; exponent += 2)
        rows.push_back({.collective = {.kind = kind,
                                       .bytes = Bytes(std::int64_t{1} << exponent),
                                       .group = {.ranks = ranks}},
                        .time = Seconds(1.0)});
  const std::vector<double> made = collective_errors(std::span(&truth, 1), rows);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = Seconds(made[i] + 1);
  rows.push_back(
      {.collective = {.bytes = Bytes(1 << 20), .group = {.ranks = 16}}, .time = Seconds(1.0)});
  const DeviceCollectivesFit fit = fit_device_collectives(cluster_of(dgx_h100(), 1), rows, 0.5);
  ASSERT_EQ(fit.families.size(), 2u);
  EXPECT_EQ(fit.families[0].family, "all_reduce");
  EXPECT_EQ(fit.families[1].family, "all_to_all");
  int held_back = 0;
  for (const FamilyError& family : fit.families) {
    EXPECT_EQ(family.fitted.kernels, 18);
    EXPECT_LT(family.fitted.p90, 0.01) << family.family;
    held_back += family.held_back.kernels;
  }
  EXPECT_GT(held_back, 0);
  EXPECT_LT(held_back, 36);
  EXPECT_NEAR(fit.parameters.nvls.bandwidth, 1.1, 0.01);
}

}  // namespace
}  // namespace meshwright
