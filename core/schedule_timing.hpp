/// Times of a schedule by direct evaluation, in integer Ticks: for exploring and for search, where
/// a TaskGraph per candidate would be too much. Communication is a delay and nothing else.
#pragma once

#include <vector>

#include "core/schedule.hpp"
#include "core/stage_times.hpp"

namespace meshwright {

/// Starts and ends run parallel to Schedule::orders; both parts of an overlapped pair share one
/// span.
struct ScheduleTiming {
  std::vector<std::vector<Ticks>> starts;
  std::vector<std::vector<Ticks>> ends;
  /// From the first start of any device to the last end of any: the step when the optimizer waits
  /// for all devices (a global gradient norm, say).
  Ticks makespan;
  /// Longest span of one device, from its first start to its last end: the "cost" of Zero Bubble
  /// (arXiv:2401.10241), valid when the optimizer step needs no barrier.
  Ticks period;
  /// Peak per device, in micro-batches of a whole device; see peak_activations().
  std::vector<double> peak_activations;
  /// Mean idle fraction of the devices: 1 - work / (p x), work being the sum of all durations and x
  /// the makespan or the period. 0.25: a quarter of the device time does nothing.
  double makespan_bubble = 0;
  double period_bubble = 0;
};

/// Starts every action as soon as its device is free and its inputs have arrived. The schedule must
/// be sound (check_schedule) and the times must have an entry per stage; anything else is a bug of
/// the caller. Linear in the number of actions, up to a factor of p when devices wait much.
ScheduleTiming time_schedule(const Schedule& schedule, const StageTimes& times);

/// Peak of activations per device in micro-batches of a whole device: a device with two chunks of
/// the model holds half a micro-batch per chunk. A forward takes one from its start; the input
/// gradient gives back the fraction `freed_by_input_gradient`, the weight gradient the rest.
/// An overlapped pair holds its forward before it frees its backward.
std::vector<double> peak_activations(const Schedule& schedule, double freed_by_input_gradient = 0);

}  // namespace meshwright
