/// Causes of slice start times: the chain of waits before every bubble, the critical path and
/// slack. Computed from a TaskGraph and its task times, predicted or measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline_of.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// Why a compute row is idle: the cause of a bubble, or exposed communication
/// (simulator/evaluate/idle_parts.hpp).
enum class IdleCause : std::uint8_t { kWarmUp, kDrain, kDependency, kCommunication, kUnknown };
inline constexpr int kIdleCauseCount = 5;
std::string_view name_of(IdleCause cause);

/// Part of a gap with one cause; a gap may start with kDependency and end with kCommunication.
struct IdleSpan {
  Nanoseconds from, to;
  IdleCause cause = IdleCause::kUnknown;
  friend bool operator==(const IdleSpan&, const IdleSpan&) = default;
};

/// Idle time before `slice_after` (or at the end of the row).
struct Bubble {
  std::uint32_t row = 0;
  std::int64_t slice_after = -1;  ///< -1: the end of the row
  Nanoseconds from, to;
  friend bool operator==(const Bubble&, const Bubble&) = default;
};

inline constexpr std::uint32_t kNoSlice = 0xffff'ffff;

struct TimelineCauses {
  /// By slice: the prerequisite that ended last, or kNoSlice for slices without prerequisites.
  std::vector<std::uint32_t> binding;
  /// By slice: how much later it could end without delaying the end of the step. Never
  /// overestimated (a message that waits for its channel counts as tied to its send).
  std::vector<std::int64_t> slack_ns;
  /// Slices on the critical path, in time order.
  std::vector<std::uint32_t> critical_path;
  std::vector<bool> is_critical;
  std::vector<std::vector<std::uint32_t>> critical_of_row;  ///< in time order
  /// CSR by slice: its dependencies (including messages and stream order) and its dependents.
  std::vector<std::uint32_t> before_begin, before;
  std::vector<std::uint32_t> after_begin, after;
  std::vector<Bubble> bubbles;                     ///< of compute rows, largest first
  std::vector<std::vector<IdleSpan>> idle_of_row;  ///< by row, in time order

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

/// Without a graph: only the gaps of compute rows; row
/// order and the trace's arrows serve as dependencies.
TimelineCauses timeline_causes_of(const TimelineTracks& tracks);

/// The chain of waits that determines the start of `slice`, nearest first, up to a slice that
/// starts as soon as its own row is free, or `most` entries.
std::vector<std::uint32_t> chain_of_causes(const TimelineCauses& causes,
                                           const TimelineTracks& tracks, std::size_t slice,
                                           std::size_t most = 16);

}  // namespace meshwright::gui
