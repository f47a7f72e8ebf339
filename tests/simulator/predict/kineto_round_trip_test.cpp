// A job on a slower device than the cluster file says, with a host that takes time, is written as a
// Kineto trace; the calibration imported from it must reproduce the step.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "core/lowering/lower.hpp"
#include "models/kineto/import_kineto.hpp"
#include "models/load/load.hpp"
#include "simulator/cost/calibrated_cost_model.hpp"
#include "simulator/cost/device_cost_model.hpp"
#include "simulator/engine/simulate.hpp"
#include "tests/simulator/predict/kineto_trace_writer.hpp"

namespace meshwright {
namespace {

/// The machine that runs the job: every kind of work takes another factor longer than predicted.
class SlowMachine final : public CostModel {
 public:
  SlowMachine(const Cluster& cluster, const HostTimes& host)
      : base_(make_device_cost_model(cluster)), host_(host) {}
  Seconds time_of(const Kernel& kernel) const override {
    const Seconds time = base_->time_of(kernel);
    if (kernel.kind == KernelKind::kGemm)
      return (kernel.phase == Phase::kBackwardWeight ? 1.8 : 1.5) * time;
    if (kernel.kind == KernelKind::kAttention) return 2.1 * time;
    return (kernel.routine == Routine::kResidual ? 3.0 : 1.4) * time;
  }
  Seconds time_of(const Collective& collective) const override {
    return 1.3 * base_->time_of(collective);
  }
  TransferCost cost_of(const Transfer& transfer) const override { return base_->cost_of(transfer); }
  HostTimes host_times() const override { return host_; }
  std::string provenance() const override { return "a slow machine"; }

 private:
  std::unique_ptr<CostModel> base_;
  HostTimes host_;
};

struct RoundTripJob {
  std::string model, cluster = "dgx-a100";
  int blocks = 32;
  std::int64_t hidden = 4096, key_heads = 8;
  Strategy strategy;
  HostTimes host;
};

struct RoundTripStep {
  TaskGraph graph;
  SimulatedTimes times;
  Seconds time;
};

RoundTripStep step_of(const RoundTripJob& job, const Cluster& cluster,
                      const CostModel& cost_model) {
  const ModelGraph model = model_from_config(find_model(job.model));
  RoundTripStep step;
  step.graph = lower({.strategy = job.strategy, .blocks_per_stage = {job.blocks}}, model, cluster);
  const std::vector<WorkPrice> prices = price_works(step.graph.parts, step.graph.works, cost_model);
  simulate(step.graph, prices, step.times);
  step.time = to_seconds(makespan(step.times));
  return step;
}

struct RoundTrip {
  Seconds measured, by_default, calibrated;
  ImportedTrace imported;
};

RoundTrip round_trip(const RoundTripJob& job) {
  const Cluster cluster = cluster_from_toml(find_cluster(job.cluster));
  const SlowMachine machine(cluster, job.host);
  const RoundTripStep truth = step_of(job, cluster, machine);
  const std::string text = kineto_trace_of({.graph = truth.graph,
                                            .cost_model = machine,
                                            .times = truth.times,
                                            .strategy = job.strategy,
                                            .hidden = job.hidden,
                                            .key_heads = job.key_heads},
                                           /*steps=*/3);
  RoundTrip result{.measured = truth.time,
                   .by_default = step_of(job, cluster, *make_device_cost_model(cluster)).time,
                   .calibrated = {},
                   .imported = import_kineto(read_kineto_trace(text, "trace.json"), {})};
  // Through the file, as a user would.
  const Calibration calibration =
      calibration_from_json(to_json(result.imported.calibration), "mine.calib.json");
  const auto calibrated = make_calibrated_cost_model(make_device_cost_model(cluster), calibration);
  result.calibrated = step_of(job, cluster, *calibrated).time;
  return result;
}

double error_of(Seconds predicted, Seconds measured) {
  return predicted.value / measured.value - 1;
}

void expect_reproduced(const RoundTrip& trip) {
  using testing::Test;
  Test::RecordProperty("default", std::to_string(error_of(trip.by_default, trip.measured)));
  Test::RecordProperty("calibrated", std::to_string(error_of(trip.calibrated, trip.measured)));
  EXPECT_LT(error_of(trip.by_default, trip.measured), -0.2);
  EXPECT_NEAR(error_of(trip.calibrated, trip.measured), 0, 0.02);
  EXPECT_NEAR(error_of(trip.imported.report.step_time, trip.measured), 0, 0.001);
  for (const ImportedFamily& family : trip.imported.report.families)
    EXPECT_GT(family.shapes, 0) << family.name << ": " << family.note;
}

RoundTripJob llama() {
  RoundTripJob job{.model = "llama-3-8b", .strategy = {}, .host = {}};
  job.strategy.degrees = {.data = 4, .tensor = 2};
  job.strategy.sequence_parallel = true;
  job.strategy.global_batch = 16;
  job.strategy.sequence_length = 8192;
  job.strategy.zero = 1;
  job.host = {.per_kernel = Seconds(8e-6),
              .per_collective = Seconds(15e-6),
              .per_layer_forward = Seconds(60e-6),
              .per_layer_backward = Seconds(90e-6),
              .per_pass = {},
              .per_step = Seconds(4e-3)};
  return job;
}

TEST(KinetoRoundTrip, ReproducesAStepOfTensorAndDataParallelism) {
  const RoundTrip trip = round_trip(llama());
  expect_reproduced(trip);
  const KinetoReport& report = trip.imported.report;
  EXPECT_EQ(report.steps, 3);
  EXPECT_EQ(report.layers, 32 * 4);  // blocks times micro-batches
  const MeasuredTrainer& trainer = *trip.imported.calibration.trainer;
  EXPECT_NEAR(trainer.host_per_kernel.value, 8e-6, 0.1e-6);
  EXPECT_NEAR(trainer.host_per_collective.value, 15e-6, 0.1e-6);
}

// A small model on short sequences: launching a block takes longer than running it, unlike the head
// with its 151,936 logits per token. It also has norms of queries and keys, and tied embeddings.
TEST(KinetoRoundTrip, ReproducesAStepThatWaitsForTheHost) {
  RoundTripJob job = llama();
  job.model = "qwen3-0.6b";
  job.blocks = 28;
  job.hidden = 1024;
  job.strategy.degrees = {.data = 8};
  job.strategy.sequence_parallel = false;
  job.strategy.sequence_length = 1024;
  job.strategy.global_batch = 32;
  job.host.per_kernel = Seconds(120e-6);
  job.host.per_layer_forward = Seconds(400e-6);
  job.host.per_layer_backward = Seconds(700e-6);
  const RoundTrip trip = round_trip(job);
  expect_reproduced(trip);
  const KinetoReport& report = trip.imported.report;
  EXPECT_GT(report.idle_for_host.value, 0.1 * report.step_time.value);
  const MeasuredTrainer& trainer = *trip.imported.calibration.trainer;
  EXPECT_NEAR(trainer.host_per_layer_backward.value, 700e-6, 50e-6);
}

// Between nodes, with layer norms, biases and GeLU.
TEST(KinetoRoundTrip, ReproducesAStepOfSeveralNodes) {
  RoundTripJob job = llama();
  job.model = "megatron-7.5b";
  job.blocks = 36;
  job.key_heads = 32;
  job.strategy.degrees = {.data = 4, .tensor = 4};
  job.strategy.sequence_length = 2048;
  const RoundTrip trip = round_trip(job);
  expect_reproduced(trip);
  bool spans_nodes = false;
  for (const CollectiveCurve& curve : trip.imported.calibration.collectives)
    spans_nodes = spans_nodes || (curve.nodes == 2 && curve.groups_per_node == 4);
  EXPECT_TRUE(spans_nodes);
}

// The calibration belongs to kernels, not to the job: at another length it is better than the
// cluster's figures.
TEST(KinetoRoundTrip, HelpsAtOtherShapes) {
  RoundTripJob job = llama();
  const Cluster cluster = cluster_from_toml(find_cluster(job.cluster));
  const Calibration calibration = round_trip(job).imported.calibration;
  job.strategy.sequence_length = 4096;
  const SlowMachine machine(cluster, job.host);
  const Seconds truth = step_of(job, cluster, machine).time;
  const auto calibrated = make_calibrated_cost_model(make_device_cost_model(cluster), calibration);
  EXPECT_NEAR(error_of(step_of(job, cluster, *calibrated).time, truth), 0, 0.05);
}

}  // namespace
}  // namespace meshwright
