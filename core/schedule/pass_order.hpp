/// The makespan of one schedule for many stage times: what waits for what is found once, so that
/// each takes a fraction of time_schedule().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// The passes of a schedule, each after those that it waits for.
struct PassOrder {
  struct Step {
    std::int32_t input = 0;  ///< 1 + the step whose output it needs; 0: it needs none
    std::uint16_t device = 0;
    std::uint16_t duration = 0;  ///< index of its kind: 4 stage + F, B, I, W
  };
  std::vector<Step> steps;
  /// By kind of pass: the stage on another device whose output it needs; -1: none.
  std::vector<std::int32_t> sender;
  int devices = 1, stages = 1;
};

/// nullopt if the schedule has overlapped pairs, an output layer of its own, or more than 16,384
/// stages. The schedule must be valid. O(passes).
std::optional<PassOrder> pass_order_of(const Schedule& schedule);

/// ScheduleTiming::makespan; links are never busy (StageTimes::link_occupancy). `ends` is scratch
/// memory. O(passes).
Ticks makespan_of(const PassOrder& order, const StageTimes& times, std::vector<Ticks>& ends);

}  // namespace meshwright
