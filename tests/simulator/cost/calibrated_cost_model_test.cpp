#include "simulator/cost/calibrated_cost_model.hpp"

#include <gtest/gtest.h>

#include "simulator/variation/expected_maximum.hpp"

namespace meshwright {
namespace {

/// A collective takes 10 s plus 1 s per byte; everything else is fixed.
class PlainModel final : public CostModel {
 public:
  Seconds time_of(const Kernel&) const override { return Seconds(7); }
  Seconds time_of(const Collective& collective) const override {
    return Seconds(10.0 + static_cast<double>(collective.bytes.value));
  }
  TransferCost cost_of(const Transfer&) const override { return {Seconds(1), Seconds(2)}; }
  std::string provenance() const override { return "plain"; }
};

/// All-gather of 4 ranks on 2 nodes: 40 s for 10 bytes, 160 s for 160 bytes.
Calibration one_curve() {
  Calibration calibration;
  calibration.provenance["file"] = "gather.txt";
  calibration.collectives.push_back(
      {.kind = CollectiveKind::kAllGather,
       .ranks = 4,
       .nodes = 2,
       .groups_per_node = 1,
       .points = {{Bytes(10), Seconds(40)}, {Bytes(160), Seconds(160)}},
       .source = "by hand"});
  return calibration;
}

Collective gather(std::int64_t bytes) {
  return {.kind = CollectiveKind::kAllGather,
          .bytes = Bytes(bytes),
          .group = {.ranks = 4, .nodes = 2, .groups_per_node = 1}};
}

// Halfway on logarithmic axes: 40 bytes take sqrt(40 * 160) = 80 s.
TEST(CalibratedCostModel, ReadsTheCurveBetweenItsEnds) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_curve());
  EXPECT_NEAR(model->time_of(gather(40)).value, 80, 1e-9);
  EXPECT_EQ(model->time_of(gather(10)).value, 40);
}

// At 10 bytes base gives 20 s and 40 s were measured: twice base below, 2 * (10 + 4) = 28. Above
// 160 bytes: 160 / 170 * (10 + 330) = 320.
TEST(CalibratedCostModel, KeepsBasesShapeAtTheMeasuredLevelBeyondTheEnds) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_curve());
  EXPECT_NEAR(model->time_of(gather(4)).value, 28, 1e-9);
  EXPECT_NEAR(model->time_of(gather(330)).value, 320, 1e-9);
}

// Expected maximum of 2, 3 and 4 normal numbers: 1 / sqrt(pi), 3 / (2 sqrt(pi)), and
// 1.02938 (Teichroew, 1956); of 16, 1.76599.
TEST(ExpectedMaximum, IsThatOfNormalNumbers) {
  EXPECT_NEAR(expected_maximum(1), 0, 1e-6);
  EXPECT_NEAR(expected_maximum(2), 0.5641896, 1e-6);
  EXPECT_NEAR(expected_maximum(3), 0.8462844, 1e-6);
  EXPECT_NEAR(expected_maximum(4), 1.0293754, 1e-6);
  EXPECT_NEAR(expected_maximum(16), 1.7659914, 1e-6);
  EXPECT_NEAR(expected_maximum(100), 2.5075937, 1e-6);
}

// Work of 4 s with a variance of 0.01 s x 4 s: a standard deviation of 0.2 s.
TEST(CalibratedCostModel, WaitsForTheSlowestAsTheNoiseOfTheMachineSays) {
  Calibration calibration = one_curve();
  EXPECT_EQ(make_calibrated_cost_model(std::make_unique<PlainModel>(), calibration)
                ->wait_of(2, Seconds(4)),
            Seconds(0));
  calibration.machine = MeasuredMachine{.processor = "by hand",
                                        .cores = 1,
                                        .memory = Bytes(1),
                                        .message_latency = Seconds(1),
                                        .message_bandwidth = BytesPerSecond(1),
                                        .memory_bandwidth = BytesPerSecond(1),
                                        .peak = {},
                                        .noise = Seconds(0.01)};
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), calibration);
  EXPECT_NEAR(model->wait_of(2, Seconds(4)).value, 0.2 * 0.5641896, 1e-6);
  EXPECT_NEAR(model->wait_of(16, Seconds(4)).value, 0.2 * 1.7659914, 1e-6);
  EXPECT_NEAR(model->wait_of(1, Seconds(4)).value, 0, 1e-6);
}

TEST(CalibratedCostModel, LeavesWhatWasNotMeasuredToBase) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_curve());
  Collective other = gather(40);
  other.kind = CollectiveKind::kAllReduce;
  EXPECT_EQ(model->time_of(other).value, 50);
  other = gather(40);
  other.group.nodes = 1;
  EXPECT_EQ(model->time_of(other).value, 50);
  other = gather(40);
  other.group.groups_per_node = 2;  // two concurrent groups were not measured
  EXPECT_EQ(model->time_of(other).value, 50);
  EXPECT_EQ(model->time_of(gather(0)).value, 10);
  EXPECT_EQ(model->time_of(Kernel{}).value, 7);
  EXPECT_EQ(model->cost_of(Transfer{}).occupancy.value, 2);
}

// Within a node, groups do not share a network port: a curve of one group applies to all.
TEST(CalibratedCostModel, IgnoresGroupsAtOnceInsideANode) {
  Calibration calibration = one_curve();
  calibration.collectives.front().nodes = 1;
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), calibration);
  Collective other = gather(10);
  other.group = {.ranks = 4, .nodes = 1, .groups_per_node = 2};
  EXPECT_EQ(model->time_of(other).value, 40);
}

// 1 s plus 2 ms per byte, measured at 1,000 and 4,000 bytes: see kernel_curve_fit.hpp.
Calibration one_kernel() {
  Calibration calibration;
  KernelCurve curve{.family = {.kind = KernelKind::kMemoryBound, .routine = Routine::kResidual},
                    .points = {}};
  for (const std::int64_t bytes : {1000, 4000})
    curve.points.push_back(
        {.memory_traffic = Bytes(bytes), .time = Seconds(1 + 0.002 * static_cast<double>(bytes))});
  calibration.kernels = {curve};
  return calibration;
}
Kernel addition(std::int64_t bytes) {
  Kernel kernel;
  kernel.routine = Routine::kResidual;
  kernel.dtype = Dtype::kFp32;
  kernel.memory_traffic = Bytes(bytes);
  return kernel;
}

TEST(CalibratedCostModel, TakesKernelsFromTheirOwnFamilyAlone) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_kernel());
  EXPECT_NEAR(model->time_of(addition(1000)).value, 3, 1e-9);
  EXPECT_NEAR(model->time_of(addition(2000)).value, 5, 1e-9);
  for (int change = 0; change < 4; ++change) {
    Kernel other = addition(2000);
    if (change == 0) other.routine = Routine::kGelu;
    if (change == 1) other.phase = Phase::kBackwardInput;
    if (change == 2) other.dtype = Dtype::kBf16;
    if (change == 3) other.on_host = true;
    EXPECT_EQ(model->time_of(other).value, 7) << change;
  }
}

TEST(CalibratedCostModel, CountsPiecesOneAfterAnother) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_kernel());
  Kernel halves = addition(2000);
  halves.pieces = 2;  // two of 1,000 bytes
  EXPECT_NEAR(model->time_of(halves).value, 6, 1e-9);
}

TEST(CalibratedCostModel, SaysThatKernelsWereMeasured) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_kernel());
  EXPECT_EQ(model->provenance(), "measured kernel families: 1 (others: plain)");
}

TEST(CalibratedCostModel, NamesWhatWasCalibrated) {
  const auto validation_of = [](const Calibration& calibration) {
    return make_calibrated_cost_model(std::make_unique<PlainModel>(), calibration)->validation();
  };
  EXPECT_EQ(validation_of({}), "unvalidated");
  EXPECT_EQ(validation_of(one_curve()), "collectives calibrated, kernel times unvalidated");
  Calibration calibration = one_kernel();
  calibration.provenance["device"] = "EPYC 7003";
  EXPECT_EQ(validation_of(calibration), "kernels calibrated on EPYC 7003");
  calibration.collectives = one_curve().collectives;
  EXPECT_EQ(validation_of(calibration), "kernels and collectives calibrated on EPYC 7003");
}

TEST(CalibratedCostModel, SaysWhereItsCurvesAreFrom) {
  const auto model = make_calibrated_cost_model(std::make_unique<PlainModel>(), one_curve());
  EXPECT_EQ(model->provenance(), "plain; measured collective curves: 1, file: gather.txt");
  EXPECT_EQ(make_calibrated_cost_model(std::make_unique<PlainModel>(), {})->provenance(), "plain");
}

}  // namespace
}  // namespace meshwright
