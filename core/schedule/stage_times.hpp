/// Pass durations of every pipeline stage, used by schedule timing and cost-driven generators.
#pragma once

#include <optional>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"

namespace meshwright {

/// Vectors are indexed by stage unless noted otherwise (replicas in bidirectional schedules have
/// separate entries).
struct StageTimes {
  std::vector<Ticks> forward;
  std::vector<Ticks> backward_input;   ///< I: gradient of the input
  std::vector<Ticks> backward_weight;  ///< W: gradient of the weights; B takes I + W
  /// From the end of a pass to the earliest start of its successor on another device. Neither
  /// device is occupied.
  Ticks latency;
  /// Overrides `latency` per boundary, in both directions: entry s is the boundary between stages s
  /// and s + 1. Empty: `latency` everywhere. Cost-driven generators use `latency` only.
  std::vector<Ticks> boundary_latency;
  /// Time that one message occupies its link (an ordered pair of devices); the next message on that
  /// link starts afterwards. Zero: links are never busy.
  Ticks link_occupancy;
  /// Duration of an overlapped pair, indexed by the stage of its forward. Empty: the sum of both.
  std::vector<Ticks> overlapped_pair;
  /// S and T of an output layer sharded over the devices. Empty: zero.
  std::vector<Ticks> output_scores, output_gradients;
  /// Duration of a barrier over all devices: before S, before T and before the first backward.
  Ticks barrier;
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

/// Arrival of a message that has not been sent yet: later than any time.
inline constexpr Ticks kNotSent = Ticks::max();

/// Latency from the end of a pass of stage `from` to its successor on the neighboring stage `to`.
Ticks latency_between(const StageTimes& times, StageId from, StageId to);

/// The same times for every stage.
StageTimes uniform_times(int stages, Ticks forward, Ticks backward_input, Ticks backward_weight);

}  // namespace meshwright
