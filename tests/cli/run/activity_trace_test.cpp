#include "cli/run/activity_trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "executor/tasks/device_spans.hpp"
#include "tests/executor/runs/training_runs.hpp"

namespace meshwright {
namespace {

TEST(ActivityTrace, NamesTheTaskOfEveryKernel) {
  const TinyJob job = tiny_job(kTinyGpt, tiny_strategy());
  const TaskId task(std::size_t{1});
  const std::vector<DeviceActivity> activities{
      {.name = "gemm", .task = activity_number(3, task), .start = 5'000, .end = 7'500, .stream = 9},
      {.name = "", .bytes = Bytes(64), .start = 6'000, .end = 6'001, .device = 1}};
  const auto events = nlohmann::json::parse(activity_trace(activities, job.graph))["traceEvents"];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["name"], "gemm");
  EXPECT_EQ(events[0]["ts"], 0);
  EXPECT_EQ(events[0]["dur"], 2.5);
  EXPECT_EQ(events[0]["tid"], 9);
  EXPECT_EQ(events[0]["args"]["task"], stable_name(job.graph, task));
  EXPECT_EQ(events[0]["args"]["step"], 3);
  EXPECT_EQ(events[1]["name"], "copy of 64 bytes");
  EXPECT_EQ(events[1]["ts"], 1);
  EXPECT_EQ(events[1]["pid"], 1);
  EXPECT_FALSE(events[1].contains("args"));
}

TEST(ActivityTrace, GoesWithKernelsThatFollowEachOther) {
  RunFlags flags;
  check_activity(flags);  // not requested
  flags.activity = "kernels.json";
  flags.device = "cuda";
  EXPECT_THROW(check_activity(flags), InputError);
  flags.clock = "wall";
  check_activity(flags);
  flags.links = "modelled";
  EXPECT_THROW(check_activity(flags), InputError);
}

TEST(ActivityTrace, HasAFileForEveryProcess) {
  EXPECT_EQ(activity_file("traces/step.json", std::nullopt), "traces/step.json");
  EXPECT_EQ(activity_file("traces/step.json", 12), "traces/step.rank12.json");
  EXPECT_EQ(activity_file("step", 0), "step.rank0");
}

}  // namespace
}  // namespace meshwright
