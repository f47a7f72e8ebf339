#include "planner/synthesis/periodic_pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "core/schedule/block_keys.hpp"
#include "core/schedule/timing.hpp"
#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

constexpr int kMicrobatches = 12, kPlacements = 4'000;

struct Span {
  Ticks start, end;
};

/// The pass of a micro-batch when all micro-batches follow the keys.
Span span_of(const DispatchTask& task, const std::vector<Ticks>& keys, int pass, std::size_t stage,
             int microbatch) {
  const auto row = static_cast<std::size_t>(pass) * task.held.size() + stage;
  const Ticks start = keys[row * static_cast<std::size_t>(task.microbatches) +
                           static_cast<std::size_t>(microbatch)];
  const auto& times = pass == 0   ? task.times.forward
                      : pass == 1 ? task.times.backward_input
                                  : task.times.backward_weight;
  return {start, start + times[stage]};
}

void expect_no_conflict(const DispatchTask& task, const std::vector<Ticks>& keys,
                        std::int32_t device) {
  std::vector<Span> busy;
  for (std::size_t s = 0; s < task.held.size(); ++s)
    for (int pass = 0; pass < 3; ++pass)
      for (int j = 0; j < task.microbatches; ++j)
        if (task.placement.device_of_stage[s].value == device)
          busy.push_back(span_of(task, keys, pass, s, j));
  std::sort(busy.begin(), busy.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.start, a.end) < std::tuple(b.start, b.end);
  });
  for (std::size_t i = 0; i + 1 < busy.size(); ++i) EXPECT_LE(busy[i].end, busy[i + 1].start);
}

/// Memory is released before it is acquired at the same time.
void expect_within_limit(const DispatchTask& task, const std::vector<Ticks>& keys,
                         std::int32_t device) {
  std::vector<std::pair<Ticks, std::int64_t>> changes;
  for (std::size_t s = 0; s < task.held.size(); ++s)
    for (int j = 0; j < task.microbatches; ++j) {
      if (task.placement.device_of_stage[s].value != device) continue;
      changes.emplace_back(span_of(task, keys, 0, s, j).start, task.held[s]);
      changes.emplace_back(span_of(task, keys, 1, s, j).end, -task.freed_by_input[s]);
      changes.emplace_back(span_of(task, keys, 2, s, j).end, task.freed_by_input[s] - task.held[s]);
    }
  std::sort(changes.begin(), changes.end());
  std::int64_t level = 0;
  for (const auto& [time, amount] : changes) {
    level += amount;
    EXPECT_LE(level, task.limits[static_cast<std::size_t>(device)]) << "at " << time.value;
  }
}

void expect_precedences(const DispatchTask& task, const std::vector<Ticks>& keys) {
  const std::size_t stages = task.held.size();  // numbered along the route
  const auto lag = [&](std::size_t s) {
    const auto& device = task.placement.device_of_stage;
    return device[s] == device[s + 1]
               ? Ticks()
               : latency_between(task.times, StageId(static_cast<std::int32_t>(s)),
                                 StageId(static_cast<std::int32_t>(s + 1)));
  };
  for (int j = 0; j < task.microbatches; ++j) {
    const auto span = [&](int pass, std::size_t s) { return span_of(task, keys, pass, s, j); };
    for (std::size_t s = 0; s < stages; ++s) {
      EXPECT_LE(span(1, s).end, span(2, s).start);
      if (s + 1 == stages) {
        EXPECT_LE(span(0, s).end, span(1, s).start);
      } else {
        EXPECT_LE(span(0, s).end + lag(s), span(0, s + 1).start);
        EXPECT_LE(span(1, s + 1).end + lag(s), span(1, s).start);
      }
    }
  }
}

TEST(PeriodicPattern, KeepsDevicesLimitsAndPrecedences) {
  int found = 0;
  for (const auto& placement :
       {looped_placement(3, 1), looped_placement(3, 2), wave_placement(3, 2)})
    for (const int microbatches : {1, 2})
      for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        const auto chunks = static_cast<int>(placement.device_of_stage.size()) / placement.devices;
        const std::vector<int> caps(3, chunks + static_cast<int>(seed % 4));
        DispatchTask task =
            counted_task(placement, kMicrobatches, random_request(seed, placement, 1).times, caps);
        if (seed % 3 == 0) task.freed_by_input.assign(task.held.size(), 1);
        PatternSearch search(task, microbatches);
        const auto pattern = search.improve(least_interval(task), kPlacements);
        if (!pattern) continue;
        ++found;
        SCOPED_TRACE(testing::Message()
                     << "seed " << seed << ", " << microbatches << " per pattern");
        const std::vector<Ticks> keys = keys_of(task, *pattern);
        EXPECT_GE(pattern->interval, least_interval(task) * microbatches);
        expect_precedences(task, keys);
        for (std::int32_t d = 0; d < placement.devices; ++d) {
          expect_no_conflict(task, keys, d);
          expect_within_limit(task, keys, d);
        }
      }
  EXPECT_GE(found, 55);  // of 60
}

// Two devices in a V, F = I = W = 1: six passes per device and micro-batch. With room for 2, a
// micro-batch has device 1 to itself from F2 on: F2 F3 I3 I2, then W2 I1 W1 and F1 of the next one.
TEST(PeriodicPattern, FindsTheShortestInterval) {
  const StageTimes times = uniform_times(4, Ticks(1), Ticks(1), Ticks(1));
  for (const auto& [cap, interval] : {std::pair(2, 8), std::pair(8, 6)}) {
    const std::vector<int> caps(2, cap);
    const DispatchTask task = counted_task(wave_placement(2, 2), kMicrobatches, times, caps);
    const auto pattern = PatternSearch(task, 1).improve(least_interval(task), kPlacements);
    ASSERT_TRUE(pattern) << "cap " << cap;
    EXPECT_EQ(pattern->interval, Ticks(interval)) << "cap " << cap;
  }
}

}  // namespace
}  // namespace meshwright
