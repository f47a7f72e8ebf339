/// How long the passes of every pipeline stage last: what a schedule is timed with and what the
/// cost-driven generators decide by.
#pragma once

#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/units.hpp"

namespace meshwright {

/// All vectors are indexed by stage (replicas of bidirectional schedules have entries of their
/// own), except where said otherwise.
struct StageTimes {
  std::vector<Ticks> forward;
  std::vector<Ticks> backward_input;   ///< I: gradient of the input
  std::vector<Ticks> backward_weight;  ///< W: gradient of the weights; B lasts I + W
  /// From the end of a pass to the earliest start of its successor on another device. Occupies
  /// neither device.
  Ticks latency;
  /// Instead of `latency`, by the earlier stage of the boundary, both ways: entry s is between the
  /// stages s and s + 1. Empty: every boundary has `latency`. Generators that decide by costs go by
  /// `latency` alone.
  std::vector<Ticks> boundary_latency;
  /// For how long one message keeps its link (an ordered pair of devices) busy: the next message
  /// of that link starts no sooner. Zero: links are never busy.
  Ticks link_occupancy;
  /// Duration of an overlapped pair whose forward is of this stage. Empty: the sum of both parts.
  std::vector<Ticks> overlapped_pair;
  /// Shares of an output layer that is split over the devices: S and T. Empty: no time.
  std::vector<Ticks> output_scores, output_gradients;
  /// From or to all devices: before S, before T and before the first backward of a micro-batch.
  Ticks barrier;
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

/// From the end of a pass of stage `from` to its successor on neighbour `to`, on another device.
Ticks latency_between(const StageTimes& times, StageId from, StageId to);

/// Every stage the same.
StageTimes uniform_times(int stages, Ticks forward, Ticks backward_input, Ticks backward_weight);

}  // namespace meshwright
