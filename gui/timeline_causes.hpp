/// Why slices start when they do: the chain behind every bubble, the critical path, slack. From a
/// TaskGraph and the times of its tasks, predicted or measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/task_graph.hpp"
#include "core/timeline_of.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// What a gap of a compute row is for: a bubble by its cause, or communication that the row stood
/// still for (simulator/idle_parts.hpp).
enum class IdleCause : std::uint8_t { kWarmUp, kDrain, kDependency, kCommunication, kUnknown };
inline constexpr int kIdleCauseCount = 5;
std::string_view name_of(IdleCause cause);

/// Part of a gap; a gap may be dependency first and communication at its end.
struct IdleSpan {
  Nanoseconds from, to;
  IdleCause cause = IdleCause::kUnknown;
  friend bool operator==(const IdleSpan&, const IdleSpan&) = default;
};

/// Bubble before `slice` (or at the end of its row).
struct Bubble {
  std::uint32_t row = 0;
  std::int64_t slice_after = -1;  ///< -1: the end of the row
  Nanoseconds from, to;
  friend bool operator==(const Bubble&, const Bubble&) = default;
};

inline constexpr std::uint32_t kNoSlice = 0xffff'ffff;

struct TimelineCauses {
  /// By slice: what it waited for longest, or kNoSlice for a slice that starts the step.
  std::vector<std::uint32_t> binding;
  /// By slice: how much later it could end without making the step longer; never too much (a
  /// message that waits for its channel counts as tied to its send).
  std::vector<std::int64_t> slack_ns;
  /// On the longest chain to the end of the step, in order of time.
  std::vector<std::uint32_t> critical_path;
  std::vector<bool> is_critical;
  std::vector<std::vector<std::uint32_t>> critical_of_row;  ///< in order of time
  /// CSR by slice: what it depends on, messages and stream order included, and who depends on it.
  std::vector<std::uint32_t> before_begin, before;
  std::vector<std::uint32_t> after_begin, after;
  std::vector<Bubble> bubbles;                     ///< of compute rows, largest first
  std::vector<std::vector<IdleSpan>> idle_of_row;  ///< by row, in order of time

  std::span<const std::uint32_t> before_of(std::size_t slice) const {
    return {before.data() + before_begin[slice], before_begin[slice + 1] - before_begin[slice]};
  }
  std::span<const std::uint32_t> after_of(std::size_t slice) const {
    return {after.data() + after_begin[slice], after_begin[slice + 1] - after_begin[slice]};
  }
};

/// `tracks` from timeline_tracks_of(graph, times). O(tasks + dependencies).
TimelineCauses timeline_causes_of(const TaskGraph& graph, const TaskTimes& times,
                                  const TimelineTracks& tracks);

/// Without a graph: gaps of compute rows and their sizes only, from row order; arrows of the trace
/// are taken as dependencies.
TimelineCauses timeline_causes_of(const TimelineTracks& tracks);

/// The chain behind the start of `slice`, nearest first: what it waited for, what that waited for,
/// … until a slice that starts as soon as its own row is free, at most `most` of them.
std::vector<std::uint32_t> chain_of_causes(const TimelineCauses& causes,
                                           const TimelineTracks& tracks, std::size_t slice,
                                           std::size_t most = 16);

}  // namespace meshwright::gui
