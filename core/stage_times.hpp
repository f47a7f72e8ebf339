/// How long the passes of every pipeline stage last: what a schedule is timed with and what the
/// cost-driven generators decide by.
#pragma once

#include <optional>
#include <vector>

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
  /// For how long one message keeps its link (an ordered pair of devices) busy: the next message
  /// of that link starts no sooner. Zero: links are never busy.
  Ticks link_occupancy;
  /// Duration of an overlapped pair whose forward is of this stage. Empty: the sum of both parts.
  std::vector<Ticks> overlapped_pair;
  friend bool operator==(const StageTimes&, const StageTimes&) = default;
};

/// Every stage the same.
StageTimes uniform_times(int stages, Ticks forward, Ticks backward_input, Ticks backward_weight);

}  // namespace meshwright
