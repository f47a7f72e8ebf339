/// Direct timing of a schedule in integer Ticks, for interactive exploration and search, where a
/// TaskGraph per candidate would be too slow. Communication is modeled as a delay.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// `starts` and `ends` have the shape of Schedule::orders; an overlapped pair shares one span.
struct ScheduleTiming {
  std::vector<std::vector<Ticks>> starts;
  std::vector<std::vector<Ticks>> ends;
  /// From the first start to the last end over all devices: the step time if the optimizer waits
  /// for all devices (e.g. for a global gradient norm).
  Ticks makespan;
  /// Maximum over devices of the time from first start to last end: the "cost" of Zero Bubble
  /// (arXiv:2401.10241), valid if the optimizer step needs no barrier.
  Ticks period;
  /// Peak per device, in micro-batches of a whole device; see peak_activations().
  std::vector<double> peak_activations;
  /// Bubble fraction: mean idle fraction of the devices, 1 - work / (p x), where work is the sum of
  /// all durations and x is the makespan or the period.
  double makespan_bubble = 0;
  double period_bubble = 0;
};

/// Starts every action as soon as its device is free and its inputs have arrived. The schedule must
/// be valid (check_schedule) and the times must have one entry per stage. Linear in the number of
/// actions, up to a factor of p if devices wait a lot.
ScheduleTiming time_schedule(const Schedule& schedule, const StageTimes& times);

/// Peak of activations per device, in micro-batches of a whole device: with two model chunks per
/// device, each chunk holds half a micro-batch. A forward acquires its activation when it starts;
/// the input gradient releases the fraction `freed_by_input_gradient`, the weight gradient the
/// rest. An overlapped pair acquires for its forward before it releases for its backward.
std::vector<double> peak_activations(const Schedule& schedule, double freed_by_input_gradient = 0);

}  // namespace meshwright
