/// Training with tensors in device memory, on a device that delays all work as long as possible:
/// bitwise equal results show that every host access waits for its data and nothing is freed early.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/tasks/device_spans.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "tests/executor/runs/training_runs.hpp"
#include "tests/kernels/device/late_device.hpp"

namespace meshwright {
namespace {

const std::string kDropoutGpt =
    with_values(kTinyGpt, {{"resid_pdrop", "0.1"}, {"attn_pdrop", "0.1"}, {"embd_pdrop", "0.1"}});

std::vector<NamedPlan> cases() {
  return {
      {"one_rank", kTinyGpt, [](Strategy&) {}},
      {"bf16", kTinyLlama, [](Strategy& s) { s.dtype = Dtype::kBf16; }},
      {"dropout", kDropoutGpt, [](Strategy&) {}},
      {"data_2", kTinyGpt, [](Strategy& s) { s.degrees.data = 2; }},
      {"zero_1", kTinyGpt, [](Strategy& s) { use_data(s, 2, 1); }},
      {"zero_2", kTinyLlama, [](Strategy& s) { use_data(s, 2, 2); }},
      {"zero_3", kTinyGpt, [](Strategy& s) { use_data(s, 2, 3); }},
      {"tensor_2", kTinyGpt, [](Strategy& s) { s.degrees.tensor = 2; }},
      {"tensor_4_copies_keys", kTinyLlama, [](Strategy& s) { s.degrees.tensor = 4; }},
      {"sequence_parallel", kTinyGpt, [](Strategy& s) { use_sequence_parallel(s, 2); }},
      {"bf16_data_2_tensor_2", kTinyLlama,
       [](Strategy& s) { s.dtype = Dtype::kBf16, s.degrees.data = 2, s.degrees.tensor = 2; }},
      {"pipeline_4", kTinyGpt, [](Strategy& s) { s.degrees.pipeline = 4; }},
      {"zero_bubble", kTinyLlama, [](Strategy& s) { use_pipeline(s, 2, "zb-h1"); }},
      {"context_gathers", kTinyLlama,
       [](Strategy& s) { use_context(s, 2, ContextAlgorithm::kAllGather); }},
      {"context_ring", kTinyGpt, [](Strategy& s) { use_context(s, 2, ContextAlgorithm::kRing); }},
      {"shared_tokens", kTinyGpt,
       [](Strategy& s) { share_tokens(s, 2, "1-2:tp=1+2:recompute=full"); }},
      {"context_all_to_all", kTinyGpt,
       [](Strategy& s) { use_context(s, 2, ContextAlgorithm::kAllToAll); }},
      {"experts_2", kTinyMixtral, [](Strategy& s) { s.degrees.data = 2, s.degrees.expert = 2; }},
      {"expert_tensor_2", kTinyMixtral,
       [](Strategy& s) {
         s.degrees.data = 2, s.degrees.tensor = 2, s.degrees.expert = 2;
         s.degrees.expert_tensor = 2;
       }},
      {"recompute", kTinyGpt, [](Strategy& s) { s.recompute = {RecomputeKind::kFull}; }},
      {"offload", kTinyGpt,
       [](Strategy& s) { use_data(s, 2, 1), s.data_parallelism.offload_optimizer = true; }},
      {"parameter_server", kTinyGpt, [](Strategy& s) { use_servers(s, 2, 1); }},
      {"one_process", kTinyGpt,
       [](Strategy& s) {
         s.degrees.data = 2;
         s.data_parallelism.kind = DataParallelKind::kOneProcess;
       }},
  };
}

class OnDevice : public testing::TestWithParam<NamedPlan> {
 protected:
  static Strategy strategy() { return GetParam().applied_to(tiny_strategy()); }
  /// Without a device, on the host.
  static TrainingRun run(const KernelTable& kernels, const DeviceTable* device,
                         TimelineClock clock) {
    return run_plan(GetParam().config, strategy(),
                    {.kernels = kernels, .device = device, .clock = clock, .steps = 2});
  }
};

class LateDevice : public OnDevice {};

TEST_P(LateDevice, ComputesTheSameBitsWhenTheHostRunsAhead) {
  expect_bitwise_same_run(run(kernel_table(Backend::kCpu), nullptr, TimelineClock::kWall),
                          run(late_kernels(), &late_device(), TimelineClock::kWall));
}

TEST_P(LateDevice, ComputesTheSameBitsWhenKernelsAreTimed) {
  expect_bitwise_same_run(run(kernel_table(Backend::kCpu), nullptr, TimelineClock::kVirtual),
                          run(late_kernels(), &late_device(), TimelineClock::kVirtual));
}

// Tasks are timed by events in their stream: none starts before the previous one ends.
TEST_P(LateDevice, TimesTasksInStreamOrder) {
  const TrainingRun measured = run(late_kernels(), &late_device(), TimelineClock::kWall);
  ASSERT_FALSE(measured.failure.has_value()) << measured.failure->cause;
  const TaskTimes& times = measured.steps.back().times;
  const TinyJob job = tiny_job(GetParam().config, strategy());
  std::map<std::pair<std::int32_t, Stream>, std::vector<std::pair<Ticks, Ticks>>> by_stream;
  for (std::size_t i = 0; i < job.graph.tasks.size(); ++i) {
    const Task& task = job.graph.tasks[i];
    by_stream[{task.rank, task.stream}].push_back({times.start[i], times.end[i]});
  }
  for (auto& [stream, spans] : by_stream) {
    std::ranges::sort(spans);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_LE(spans[i].first, spans[i].second);
      if (i == 0) continue;
      EXPECT_LE(spans[i - 1].second, spans[i].first);
    }
  }
}

// The activity recorder is notified of the start and end of each task once per step.
TEST(LateRecorder, IsNotifiedOfEveryTask) {
  static std::mutex mutex;
  static std::map<std::uint64_t, int> entered;
  static std::atomic<int> open;
  entered.clear(), open = 0;
  static const ActivityTable recorder{.start = [] { return std::string(); },
                                      .enter =
                                          [](std::uint64_t task) {
                                            const std::lock_guard lock(mutex);
                                            ++entered[task];
                                            ++open;
                                          },
                                      .leave = [] { --open; },
                                      .stop = [] { return std::vector<DeviceActivity>(); }};
  Strategy strategy = tiny_strategy();
  strategy.degrees.data = 2;
  const TinyJob job = tiny_job(kTinyGpt, strategy);
  TrainingRequest request = job.request(late_kernels());
  request.device = &late_device();
  request.recorder = &recorder;
  request.clock = TimelineClock::kWall;
  request.steps = 2;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  EXPECT_EQ(open, 0);
  EXPECT_EQ(entered.size(), 2 * job.graph.tasks.size());
  for (const auto& [number, times] : entered) {
    EXPECT_EQ(times, 1);
    EXPECT_LT(task_of_activity(number).index(), job.graph.tasks.size());
  }
}

// Profilers see each task by its name.
TEST(LateRanges, HaveTheNamesOfTasks) {
  static std::mutex mutex;
  static std::map<std::string, int> begun;
  static std::atomic<int> open;
  begun.clear(), open = 0;
  static const RangeTable ranges{.begin =
                                     [](const char* name) {
                                       const std::lock_guard lock(mutex);
                                       ++begun[name];
                                       ++open;
                                     },
                                 .end = [] { --open; }};
  const TinyJob job = tiny_job(kTinyGpt, tiny_strategy());
  TrainingRequest request = job.request(late_kernels());
  request.device = &late_device();
  request.ranges = &ranges;
  request.clock = TimelineClock::kWall;
  request.steps = 2;
  const TrainingRun run = train(request);
  ASSERT_FALSE(run.failure.has_value()) << run.failure->cause;
  EXPECT_EQ(open, 0);
  EXPECT_EQ(begun.size(), job.graph.tasks.size());
  for (std::size_t t = 0; t < job.graph.tasks.size(); ++t)
    EXPECT_EQ(begun[stable_name(job.graph, TaskId(t))], 2);
}

INSTANTIATE_TEST_SUITE_P(Strategies, LateDevice, testing::ValuesIn(cases()), plan_name);

// ---- on a GPU ----

/// Another summation order changes fp32 results by about 1e-6 of the norm; bf16 rounds activations
/// to 2^-8, and about as much remains after two steps of AdamW.
double tolerance_of(const Strategy& strategy) {
  return strategy.dtype == Dtype::kFp32 ? 1e-4 : 2e-2;
}

class CudaTraining : public OnDevice {
 protected:
  void SetUp() override {
    if (!backend_plugin(Backend::kCuda).missing.empty())
      GTEST_SKIP() << backend_plugin(Backend::kCuda).missing;
  }
  static TrainingRun run_on_gpu(TimelineClock clock) {
    const PluginExports& cuda = *backend_plugin(Backend::kCuda).exports;
    return run(cuda.kernels, &cuda.device, clock);
  }
  static double tolerance() { return tolerance_of(strategy()); }
};

TEST_P(CudaTraining, MatchesTheHostWhenRunningAhead) {
  expect_same_run(run(kernel_table(Backend::kCpu), nullptr, TimelineClock::kWall),
                  run_on_gpu(TimelineClock::kWall), tolerance());
}

TEST_P(CudaTraining, MatchesTheHostWithTimedKernels) {
  expect_same_run(run(kernel_table(Backend::kCpu), nullptr, TimelineClock::kVirtual),
                  run_on_gpu(TimelineClock::kVirtual), tolerance());
}

INSTANTIATE_TEST_SUITE_P(Strategies, CudaTraining, testing::ValuesIn(cases()), plan_name);

}  // namespace
}  // namespace meshwright
