#include "planner/synthesis/schedule_memory_bounds.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "core/schedule/block_keys.hpp"
#include "core/schedule/timing.hpp"
#include "planner/synthesis/schedule_bounds.hpp"
#include "planner/synthesis/schedule_device_bounds.hpp"
#include "tests/planner/synthesis/schedule_cases.hpp"

namespace meshwright {
namespace {

/// Whether any schedule of a task has at most `target`: all orders, operation after operation in
/// the order of their starts, each as early as it can. Nothing if that takes too many steps.
class EverySchedule {
 public:
  EverySchedule(const DispatchTask& task, ScheduleObjective objective, Ticks target)
      : task_(task), objective_(objective), target_(target) {
    const std::size_t stages = task.held.size();
    for (auto& done : done_) done.assign(stages, 0);
    for (auto& ends : ends_)
      ends.assign(stages, std::vector<Ticks>(static_cast<std::size_t>(task.microbatches)));
    devices_.resize(task.limits.size());
    for (std::size_t s = 0; s < stages; ++s)
      for (int pass = 0; pass < 3; ++pass)
        devices_[device_of(s)].work_left += duration(pass, s) * task.microbatches;
    operations_left_ = 3 * static_cast<int>(stages) * task.microbatches;
  }
  std::optional<bool> can_meet() {
    const bool is_met = extend(Ticks());
    if (steps_ >= kMostSteps) return std::nullopt;
    return is_met;
  }

 private:
  static constexpr int kMostSteps = 1'000'000;
  struct Device {
    Ticks free, first, work_left;
    std::int64_t level = 0;
    bool has_started = false;
  };

  std::size_t device_of(std::size_t s) const { return task_.placement.device_of_stage[s].index(); }
  Ticks duration(int pass, std::size_t s) const {
    return pass == 0   ? task_.times.forward[s]
           : pass == 1 ? task_.times.backward_input[s]
                       : task_.times.backward_weight[s];
  }
  /// When the input of the next micro-batch of a pass is there; nothing if it has not been made.
  std::optional<Ticks> arrival(int pass, std::size_t s) const {
    const std::size_t j = static_cast<std::size_t>(done_[static_cast<std::size_t>(pass)][s]);
    const std::size_t last = task_.held.size() - 1;  // stages are numbered along the route
    if (pass == 0 && s == 0) return Ticks();
    const std::size_t from_pass = pass == 0 || (pass == 1 && s == last) ? 0 : 1;
    const std::size_t from = pass == 2 || (pass == 1 && s == last) ? s : pass == 0 ? s - 1 : s + 1;
    if (static_cast<std::size_t>(done_[from_pass][from]) <= j) return std::nullopt;
    Ticks time = ends_[from_pass][from][j];
    if (device_of(from) != device_of(s))
      time += latency_between(task_.times, StageId(static_cast<std::int32_t>(from)),
                              StageId(static_cast<std::int32_t>(s)));
    return time;
  }
  bool extend(Ticks last_start) {
    if (operations_left_ == 0) return true;
    if (++steps_ >= kMostSteps) return false;
    for (int pass = 2; pass >= 0; --pass)
      for (std::size_t s = 0; s < task_.held.size(); ++s)
        if (try_next(pass, s, last_start)) return true;
    return false;
  }
  bool try_next(int pass, std::size_t s, Ticks last_start) {
    int& done = done_[static_cast<std::size_t>(pass)][s];
    if (done == task_.microbatches) return false;
    Device& device = devices_[device_of(s)];
    const std::optional<Ticks> ready = arrival(pass, s);
    if (!ready || std::max(*ready, device.free) < last_start) return false;
    const std::array<std::int64_t, 3> change{task_.held[s], -task_.freed_by_input[s],
                                             task_.freed_by_input[s] - task_.held[s]};
    const std::int64_t level = device.level + change[static_cast<std::size_t>(pass)];
    if (level > task_.limits[device_of(s)]) return false;
    const Device before = device;
    const Ticks start = std::max(*ready, device.free);
    if (!std::exchange(device.has_started, true) && objective_ == ScheduleObjective::kPeriod)
      device.first = start;
    device.level = level;
    device.free = start + duration(pass, s);
    device.work_left -= duration(pass, s);
    bool is_met = false;
    if (device.free + device.work_left - device.first <= target_) {
      ends_[static_cast<std::size_t>(pass)][s][static_cast<std::size_t>(done)] = device.free;
      ++done;
      --operations_left_;
      is_met = extend(start);
      --done;
      ++operations_left_;
    }
    device = before;
    return is_met;
  }

  const DispatchTask& task_;
  ScheduleObjective objective_;
  Ticks target_;
  std::array<std::vector<int>, 3> done_;
  std::array<std::vector<std::vector<Ticks>>, 3> ends_;  ///< by pass, stage and micro-batch
  std::vector<Device> devices_;
  int operations_left_ = 0, steps_ = 0;
};

/// Two devices, up to four micro-batches, one stage each, two in a V or two in a loop; random
/// times; every second case weighs its stages and frees part of them with the input gradient.
DispatchTask small_task(std::uint32_t seed, const Placement& placement, int microbatches, int cap) {
  const SynthesisRequest random = random_request(seed, placement, microbatches);
  const std::vector<int> caps(2, cap);
  DispatchTask task = counted_task(placement, microbatches, random.times, caps);
  if (seed % 2 == 0) {
    for (std::size_t s = 0; s < task.held.size(); ++s) {
      task.held[s] = 2 + static_cast<std::int64_t>((seed + s) % 2);
      task.freed_by_input[s] = static_cast<std::int64_t>((seed / 2 + s) % 3);
    }
    for (std::int64_t& limit : task.limits) limit *= 3;
  }
  return task;
}

/// A value that no schedule of a small task exceeds.
constexpr Ticks kAny(1'000'000'000);

/// `bound_of` must not exceed the objective of any schedule.
void expect_below_every_schedule(
    const std::function<Ticks(const DispatchTask&, ScheduleObjective)>& bound_of) {
  struct Shape {
    Placement placement;
    int microbatches, least_cap, most_cap;
  };
  const Shape shapes[] = {{looped_placement(2, 1), 3, 1, 3},
                          {looped_placement(2, 1), 4, 1, 2},
                          {wave_placement(2, 2), 2, 2, 4},
                          {wave_placement(2, 2), 3, 2, 3},
                          {looped_placement(2, 2), 2, 2, 4}};
  int decided = 0, cases = 0;
  for (const Shape& shape : shapes)
    for (int cap = shape.least_cap; cap <= shape.most_cap; ++cap)
      for (std::uint32_t seed = 1; seed <= 4; ++seed)
        for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
          const DispatchTask task = small_task(seed, shape.placement, shape.microbatches, cap);
          const Ticks bound = bound_of(task, objective);
          const std::optional<bool> is_beaten =
              EverySchedule(task, objective, bound - Ticks(1)).can_meet();
          ++cases;
          if (!is_beaten) continue;
          ++decided;
          EXPECT_FALSE(*is_beaten)
              << "seed " << seed << ", cap " << cap << ", " << shape.microbatches
              << " micro-batches, " << task.held.size() << " stages";
        }
  EXPECT_GE(decided, cases * 9 / 10);
}

TEST(MemoryBound, IsNeverAboveTheBestOfAllSmallSchedules) {
  expect_below_every_schedule([](const DispatchTask& task, ScheduleObjective objective) {
    return memory_bound(task, objective);
  });
}

TEST(DeviceBound, IsNeverAboveTheBestOfAllSmallSchedules) {
  for (const int labels : {1, 100})
    expect_below_every_schedule([&](const DispatchTask& task, ScheduleObjective objective) {
      return device_bound(task, objective, {.known = kAny, .labels_per_state = labels});
    });
}

// One device with two stages has no other devices to wait for, so that its bound is the optimum.
TEST(DeviceBound, IsTheOptimumOfOneDevice) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed)
    for (int cap = 2; cap <= 4; ++cap) {
      const Placement placement = looped_placement(1, 2);
      const std::vector<int> caps{cap};
      const DispatchTask task =
          counted_task(placement, 3, random_request(seed, placement, 3).times, caps);
      const Ticks bound = device_bound(task, ScheduleObjective::kMakespan,
                                       {.known = kAny, .labels_per_state = 1000});
      EXPECT_EQ(EverySchedule(task, ScheduleObjective::kMakespan, bound).can_meet(), true)
          << "seed " << seed << ", cap " << cap;
    }
}

// Two devices in a V, F = I = W = 1, room for 2 on each device. Device 1: after F0 and F1, a
// micro-batch takes F2 F3 I3 I2 = 4; F2 of the next one needs all room, so that W2, I1, W1 and its
// own F1 come in between: 4. After the last I2: I1 I0 W0. 2 + 3 x 4 + 2 x 4 + 3 = 25.
TEST(DeviceBound, SeesThatADeviceWorksWhileMemoryIsFull) {
  const std::vector<int> caps{2, 2};
  const DispatchTask task =
      counted_task(wave_placement(2, 2), 3, uniform_times(4, Ticks(1), Ticks(1), Ticks(1)), caps);
  EXPECT_EQ(device_bound(task, 1, ScheduleObjective::kMakespan, {.known = kAny}), Ticks(25));
  // The period of device 0 counts from 0 as well.
  EXPECT_EQ(device_bound(task, 1, ScheduleObjective::kPeriod, {.known = kAny}), Ticks(25));
  EXPECT_EQ(device_bound(task, 1, ScheduleObjective::kMakespan, {.known = Ticks(24)}), Ticks(24));
}

TEST(DeviceBound, IsZeroIfThereAreTooManyLabels) {
  const std::vector<int> caps{4, 4};
  const DispatchTask task =
      counted_task(wave_placement(2, 2), 6, uniform_times(4, Ticks(1), Ticks(1), Ticks(1)), caps);
  EXPECT_EQ(device_bound(task, 1, ScheduleObjective::kMakespan, {.known = kAny, .most_labels = 10}),
            Ticks());
}

// Merging labels can only lower the bound, which then grows with their number.
TEST(DeviceBound, IsWeakerWithFewerLabels) {
  int weaker = 0;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    const Placement placement = wave_placement(3, 2);
    const std::vector<int> caps{4, 4, 4};
    const DispatchTask task =
        counted_task(placement, 6, random_request(seed, placement, 6).times, caps);
    const auto bound_with = [&](int labels) {
      return device_bound(task, 2, ScheduleObjective::kMakespan,
                          {.known = kAny, .labels_per_state = labels});
    };
    EXPECT_LE(bound_with(1), bound_with(1000)) << "seed " << seed;
    weaker += bound_with(1) < bound_with(1000) ? 1 : 0;
  }
  EXPECT_GT(weaker, 0);
}

/// Propagation with the precedences that follow from caps, on the cases that count micro-batches.
TEST(MemoryPrecedences, BoundIsNeverAboveTheBestOfAllSmallSchedules) {
  int decided = 0, cases = 0;
  for (const auto& placement : {wave_placement(2, 2), looped_placement(2, 2)})
    for (int cap = 2; cap <= 4; ++cap)
      for (std::uint32_t seed = 1; seed <= 15; seed += 2)
        for (const auto objective : {ScheduleObjective::kMakespan, ScheduleObjective::kPeriod}) {
          const DispatchTask task = small_task(seed, placement, 3, cap);
          SynthesisRequest request;
          request.placement = placement;
          request.microbatches = 3;
          request.times = task.times;
          request.caps.assign(2, cap);
          request.objective = objective;
          const SynthesizedSchedule made = synthesize(request);
          const Ticks bound = lower_bound_of(request, made.value);
          const std::optional<bool> is_beaten =
              EverySchedule(task, objective, bound - Ticks(1)).can_meet();
          ++cases;
          if (!is_beaten) continue;
          ++decided;
          EXPECT_FALSE(*is_beaten) << "seed " << seed << ", cap " << cap;
        }
  EXPECT_GE(decided, cases * 9 / 10);
}

// Every schedule within the caps satisfies every precedence of the network: random keys, two to
// four stages per device.
TEST(MemoryPrecedences, HoldInEverySchedule) {
  std::int64_t checked = 0;
  for (const auto& placement :
       {wave_placement(3, 2), looped_placement(3, 2), looped_placement(2, 3), wave_placement(2, 4),
        looped_placement(2, 4)})
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
      constexpr int kMicrobatches = 7;
      std::mt19937 random(seed);
      const SynthesisRequest request = random_request(seed, placement, kMicrobatches);
      const auto chunks =
          static_cast<int>(request.times.forward.size()) / request.placement.devices;
      const std::vector<int> caps(static_cast<std::size_t>(placement.devices),
                                  chunks + static_cast<int>(random() % 7));
      const DispatchTask task = counted_task(placement, kMicrobatches, request.times, caps);
      Dispatcher dispatcher(task);
      DispatchRule rule;
      for (std::size_t i = 0; i < 3 * task.held.size() * kMicrobatches; ++i)
        rule.keys.push_back(Ticks(static_cast<std::int64_t>(random() % 1000)));
      rule.patience = static_cast<double>(seed % 3) / 2;
      ASSERT_TRUE(dispatcher.run(rule));
      const OperationNetwork network =
          make_operation_network(placement, kMicrobatches, request.times, caps);
      const std::vector<Ticks>& starts = dispatcher.starts();
      for (std::int32_t o = 0; o < network.size(); ++o)
        for (const Precedence& next : network.after(o)) {
          ++checked;
          ASSERT_GE(starts[at(next.operation)], starts[at(o)] + network.duration[at(o)] + next.lag)
              << "seed " << seed << ": " << o << " before " << next.operation;
        }
    }
  EXPECT_GT(checked, 50'000);
}

// Two devices in a V, room for one micro-batch on each: F = I = W = 1. On device 0, F on the last
// stage of a micro-batch waits for W on the first stage of the one before: F3 I3 I2 I1 I0 W0 = 6
// per micro-batch (on device 1: F2 F3 I3 I2 I1 W1, also 6). Three take F0 F1 F2 + 3 x 6 = 21.
TEST(MemoryPrecedences, LetOneMicrobatchPassAtATime) {
  SynthesisRequest request;
  request.placement = wave_placement(2, 2);
  request.microbatches = 3;
  request.times = uniform_times(4, Ticks(1), Ticks(1), Ticks(1));
  request.caps = {2, 2};
  EXPECT_GE(
      one_machine_bound(make_operation_network(request.placement, 3, request.times, request.caps)),
      Ticks(21));
}

// Two devices in a V, F = I = W = 1, room for 3 on each device. A micro-batch holds two units of
// device 1 from F2 to I2: F2 F3 I3 I2 = 4, so floor(3 / 2) = 1 micro-batch at a time passes there:
// 5 of them take 20. F0 F1 come before the first, W2 or I1 W1, I0 W0 after the last: I1, I0, W0.
TEST(MemoryBound, RoundsRoomDownToWholeMicrobatches) {
  const std::vector<int> caps{3, 3};
  const DispatchTask task =
      counted_task(wave_placement(2, 2), 5, uniform_times(4, Ticks(1), Ticks(1), Ticks(1)), caps);
  EXPECT_GE(memory_bound(task, ScheduleObjective::kMakespan), Ticks(2 + 20 + 3));
}

}  // namespace
}  // namespace meshwright
