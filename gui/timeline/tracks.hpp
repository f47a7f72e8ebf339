/// Slices of a timeline, laid out for drawing tens of millions of them: columns instead of objects,
/// row after row, each row sorted by start without overlaps. At most 20 bytes per slice, including
/// the coverage mipmap. Built by timeline_tracks_of() or a trace reader, then immutable: threads
/// share a `std::shared_ptr<const TimelineTracks>`.
///
/// Times are whole nanoseconds since the first slice. Ticks are rounded down at both ends, so
/// slices that do not overlap still do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/memory_amounts.hpp"
#include "core/base/units.hpp"
#include "core/graph/task_graph.hpp"
#include "core/timeline/timeline.hpp"
#include "core/timeline/timeline_of.hpp"
#include "gui/timeline/coverage.hpp"
#include "gui/timeline/kinds.hpp"

namespace meshwright::gui {

/// One stream of one rank.
struct TimelineRow {
  std::string label;                ///< "compute", "stream 7"
  std::int32_t rank = -1;           ///< RankId value; -1 for no rank
  std::int32_t stream = -1;         ///< Stream value; -1 for streams of other programs
  std::int32_t pipeline_rank = -1;  ///< -1 if unknown
  std::int32_t replica =
      0;  ///< data-parallel replica; only replica 0 is drawn if replicas are folded
  bool is_compute = false;  ///< idle time between its slices is a bubble
  friend bool operator==(const TimelineRow&, const TimelineRow&) = default;
};

/// Properties shared by many slices.
struct SliceLabel {
  std::string name;         ///< "F", "ncclDevKernel_AllReduce…"
  std::int32_t stage = -1;  ///< -1 for no stage
  friend bool operator==(const SliceLabel&, const SliceLabel&) = default;
};

/// A message or a dependency from one slice to another, by index.
struct SliceArrow {
  std::uint32_t from = 0, to = 0;
  friend auto operator<=>(const SliceArrow&, const SliceArrow&) = default;
};

/// Memory of a rank right after `time`.
struct MemoryPoint {
  Nanoseconds time;
  MemoryAmounts amounts;
  friend bool operator==(const MemoryPoint&, const MemoryPoint&) = default;
};
struct MemoryCurveOfRank {
  std::int32_t rank = 0;
  Bytes capacity;  ///< zero if unknown
  std::vector<MemoryPoint> points;
  friend bool operator==(const MemoryCurveOfRank&, const MemoryCurveOfRank&) = default;
};

inline constexpr std::uint16_t kNoMicrobatch = 0xffff;
/// Stored duration of slices that are longer than 32 bits of nanoseconds; see long_durations.
inline constexpr std::uint32_t kLongSlice = std::numeric_limits<std::uint32_t>::max();
/// Stored label of slices whose label does not fit 16 bits; see far_labels.
inline constexpr std::uint16_t kFarLabel = 0xffff;

struct TimelineTracks {
  TimelineOrigin origin = TimelineOrigin::kPredicted;
  std::string title;  ///< file name or scenario
  std::vector<TimelineRow> rows;
  std::vector<std::size_t> row_begin;  ///< rows.size() + 1 offsets into the columns

  // Columns, one entry per slice.
  std::vector<std::int64_t> start_ns;
  std::vector<std::uint32_t> duration_ns;
  std::vector<SliceKind> kind;
  std::vector<std::uint16_t> microbatch;
  std::vector<std::uint16_t> label;  ///< index into labels

  std::vector<SliceLabel> labels;
  std::vector<std::pair<std::size_t, std::int64_t>> long_durations;  ///< by slice
  std::vector<std::pair<std::size_t, std::uint32_t>> far_labels;     ///< by slice
  std::vector<SliceArrow> arrows;                                    ///< by `from`
  std::vector<MemoryCurveOfRank> memory;                             ///< by rank
  std::vector<Nanoseconds> iterations;  ///< starts of training steps, if known
  std::map<std::string, std::string> provenance;
  /// Notes for the user on skipped or repaired events: "12 events dropped: …".
  std::vector<std::string> notes;

  Nanoseconds base;  ///< subtracted from the times of the source
  Nanoseconds end;   ///< largest end of a slice
  TimelineCoverage coverage;

  std::size_t slice_count() const { return start_ns.size(); }
  Nanoseconds start_of(std::size_t slice) const { return Nanoseconds(start_ns[slice]); }
  Nanoseconds duration_of(std::size_t slice) const {
    const std::uint32_t stored = duration_ns[slice];
    return stored == kLongSlice ? long_duration(slice) : Nanoseconds(stored);
  }
  Nanoseconds end_of(std::size_t slice) const { return start_of(slice) + duration_of(slice); }
  const SliceLabel& label_of(std::size_t slice) const {
    return labels[label[slice] == kFarLabel ? far_label(slice) : label[slice]];
  }
  /// The row of `slice`; O(log rows).
  std::size_t row_of(std::size_t slice) const;
  /// First slice of `row` that ends after `time`, or row_begin[row + 1]; O(log slices).
  std::size_t first_ending_after(std::size_t row, Nanoseconds time) const;
  /// First slice of `row` that starts at or after `time`; O(log slices).
  std::size_t first_starting_from(std::size_t row, Nanoseconds time) const;
  /// Slice of `row` at `time` (start ≤ time < end), or row_begin[row + 1].
  std::size_t slice_at(std::size_t row, Nanoseconds time) const;

 private:
  Nanoseconds long_duration(std::size_t slice) const;
  std::size_t far_label(std::size_t slice) const;
};

/// Sets the duration of a slice that has no entry in long_durations yet.
inline void set_duration(TimelineTracks& tracks, std::size_t slice, std::int64_t duration) {
  const bool is_long = duration >= kLongSlice;
  tracks.duration_ns[slice] = is_long ? kLongSlice : static_cast<std::uint32_t>(duration);
  if (is_long) tracks.long_durations.emplace_back(slice, duration);
}

/// "F7", "B12", "all-reduce".
std::string short_name(const TimelineTracks& tracks, std::size_t slice);
/// "r12.compute.s3.F7"; without the suffix "#2" of repeated names.
std::string full_name(const TimelineTracks& tracks, std::size_t slice);

/// Slices with `text` in their full or short name (case-insensitive), ordered by start, at most
/// `most`. Linear in the number of slices; does not build names of labels that cannot match.
std::vector<std::uint32_t> slices_named(const TimelineTracks& tracks, std::string_view text,
                                        std::size_t most = 100'000);

/// Describes violated invariants: overlaps, order, columns of different lengths. Empty if valid.
std::vector<std::string> check_timeline_tracks(const TimelineTracks& tracks);

/// Builds tracks slice by slice: rows in any order, slices of a row by
/// start. A slice that starts before its predecessor on the row has
/// ended is shortened to start at that end, so slices never overlap.
class TracksBuilder {
 public:
  struct Slice {
    std::int64_t start_ns = 0, duration_ns = 0;
    std::uint32_t label = 0;  ///< result of label()
    SliceKind kind = SliceKind::kKernel;
    std::uint16_t microbatch = kNoMicrobatch;
  };
  std::size_t add_row(TimelineRow row);
  /// Index of the label with this name and stage; equal labels are stored once.
  std::uint32_t label(std::string_view name, std::int32_t stage);
  void reserve(std::size_t slices);
  /// Adds a slice to the last row; `start_ns` is in the clock of the source.
  void add(const Slice& slice);
  std::size_t repaired() const { return repaired_; }
  std::size_t slice_count() const { return tracks_.slice_count(); }
  TimelineTracks& tracks() { return tracks_; }
  /// Shifts all times (also of memory and iterations) so that the earliest start is zero, and
  /// builds the coverage.
  TimelineTracks finish();

 private:
  TimelineTracks tracks_;
  std::map<std::pair<std::string, std::int32_t>, std::uint32_t, std::less<>> label_of_;
  /// Indices of labels by hash: neighbors often share one of a few.
  std::array<std::uint32_t, 1024> recent_{};
  std::int64_t row_end_ = std::numeric_limits<std::int64_t>::min();
  std::size_t repaired_ = 0;
};

/// Memory used for slices, including the coverage, without names, rows and memory curves.
Bytes slice_storage(const TimelineTracks& tracks);

/// Slice i is span i of the timeline. Linear time, including the coverage; above about 100,000
/// spans it must run in a job, not on the GUI thread. Frees what it has read, so that a timeline
/// that is moved to it and the tracks are not in memory at the same time.
TimelineTracks timeline_tracks_of(Timeline timeline);

/// The same for all tasks of a graph, without building their
/// names; rows also have their replica and pipeline rank.
TimelineTracks timeline_tracks_of(const TaskGraph& graph, const TaskTimes& times);

/// The inverse: whole slices of `rows` that overlap [from, to). Throws InputError for rows that are
/// not streams of a rank and slices that are not tasks, as in traces of other programs.
Timeline timeline_of_tracks(const TimelineTracks& tracks, const std::vector<std::size_t>& rows,
                            Nanoseconds from, Nanoseconds to);

}  // namespace meshwright::gui
