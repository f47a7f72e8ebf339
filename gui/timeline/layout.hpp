/// From tracks and a time window to draw lists. Pure: no
/// widgets, no colors, no state; the painter only fills pixels.
///
///   arrange_lanes()  rows and counters → lanes from top to bottom: pinned lanes first, then
///                    ranks in order, each followed by its streams if expanded
///   draw_lane()      lane and window → busy fraction of every pixel by kind, boxes to outline and
///                    label, idle parts to hatch
///
/// The color of every pixel comes from exact busy fractions at every zoom: from the coverage mipmap
/// while its bins are narrower than a pixel, else from the slices themselves. Slices of at least
/// kBoxWidth pixels also become boxes with an edge and, if there is room, a label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

/// The visible time range and its width in pixels.
struct TimeWindow {
  Nanoseconds from, to;
  int width = 0;
  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;

  Nanoseconds span() const { return to - from; }
  double nanoseconds_per_pixel() const {
    return width > 0 ? static_cast<double>(span().value) / width : 1.0;
  }
  /// May be outside [0, width).
  double pixel_of(Nanoseconds time) const {
    return static_cast<double>((time - from).value) / nanoseconds_per_pixel();
  }
  Nanoseconds time_at(double pixel) const;
};

inline constexpr Nanoseconds kShortestWindow{100};
/// The window scaled by `factor` with `time` fixed at its pixel, kept within [-margin, end +
/// margin] where margin is end / 10.
TimeWindow zoomed(const TimeWindow& window, Nanoseconds time, double factor, Nanoseconds end);
TimeWindow panned(const TimeWindow& window, Nanoseconds by, Nanoseconds end);
/// The whole timeline with a small margin on both sides.
TimeWindow whole(Nanoseconds end, int width);

// ---- lanes --------------------------------------------------------------------------------------

enum class LaneKind : std::uint8_t { kSlices, kMemory, kInFlight, kLinks, kDifference };
enum class LaneOrder : std::uint8_t { kRank, kPipelineRank, kStraggler };
/// Counters below the rows of a rank: none, memory, or memory, in-flight micro-batches and streams.
enum class LaneCounters : std::uint8_t { kNone, kMemory, kAll };

struct Lane {
  LaneKind kind = LaneKind::kSlices;
  std::int32_t row = -1;    ///< index into tracks.rows; for counters the compute row of their rank
  std::int32_t other = -1;  ///< kDifference: row of the measured tracks
  std::int32_t rank = -1;
  int top = 0, height = 0;
  bool is_measured = false;  ///< row refers to the measured tracks of a comparison
  bool is_pinned = false;
  bool leads_rank = false;  ///< first lane of its rank: shows the rank's name
  bool can_open = false;    ///< first lane of a rank with more streams
  bool is_open = false;
  friend bool operator==(const Lane&, const Lane&) = default;
};

struct LaneSizes {
  int compute = 24, stream = 12, counter = 44, difference = 16, gap = 2, rank_gap = 6;
  friend bool operator==(const LaneSizes&, const LaneSizes&) = default;
};

struct LaneOptions {
  std::vector<std::size_t> pinned;    ///< rows, in pinning order
  std::set<std::int32_t> open_ranks;  ///< ranks with visible streams
  bool all_open = false;
  bool fold_replicas = true;  ///< replica 0 only
  LaneCounters counters = LaneCounters::kNone;
  LaneOrder order = LaneOrder::kRank;
  LaneSizes sizes;
  friend bool operator==(const LaneOptions&, const LaneOptions&) = default;
};

struct LaneArrangement {
  std::vector<Lane> lanes;  ///< from top to bottom; pinned ones first
  int pinned_height = 0;    ///< height of the pinned lanes, which do not scroll
  int height = 0;           ///< total height, including pinned lanes
  std::size_t folded_ranks = 0;
  friend bool operator==(const LaneArrangement&, const LaneArrangement&) = default;
};

LaneArrangement arrange_lanes(const TimelineTracks& tracks, const LaneOptions& options);
/// For every rank: predicted row, measured row, difference.
LaneArrangement arrange_comparison(const TimelineTracks& predicted, const TimelineTracks& measured,
                                   const LaneOptions& options);
/// The lane at `y`, with all lanes except pinned ones scrolled up by `scroll`.
std::optional<std::size_t> lane_at(const LaneArrangement& arrangement, int y, int scroll);

// ---- draw lists ---------------------------------------------------------------------------------

inline constexpr double kBoxWidth = 3.0;    ///< narrower slices are merged into pixels
inline constexpr double kLabelWidth = 7.0;  ///< narrower boxes have no label
inline constexpr double kHatchWidth = 5.0;  ///< narrower idle parts are not hatched
inline constexpr std::uint16_t kFullShare = 65535;

struct SliceBox {
  std::uint32_t slice = 0;
  float left = 0, right = 0;  ///< pixels, within [-1, width + 1]
  friend bool operator==(const SliceBox&, const SliceBox&) = default;
};
struct IdleBox {
  float left = 0, right = 0;
  IdleCause cause = IdleCause::kUnknown;
  friend bool operator==(const IdleBox&, const IdleBox&) = default;
};

struct LaneDrawing {
  std::vector<SliceKind> channels;
  std::vector<std::uint16_t> shares;  ///< [pixel, channel]; the rest of kFullShare is idle
  std::vector<SliceBox> boxes;
  std::vector<IdleBox> idle;
  std::size_t folded = 0;     ///< visible slices without a box
  bool from_pyramid = false;  ///< shares come from the mipmap, not from slices
};

/// Writes to `reuse` to avoid allocations. O(width) from the mipmap, else O(visible slices), at
/// most about 16 per pixel.
void draw_lane(const TimelineTracks& tracks, std::size_t row, const TimeWindow& window,
               const TimelineCauses* causes, LaneDrawing& reuse);

/// The slice at a pixel: the one at its center, else the one that covers most of it.
std::optional<std::size_t> slice_at_pixel(const TimelineTracks& tracks, std::size_t row,
                                          const TimeWindow& window, double x);
/// The gap of the row at `time`: from the end of a slice (or 0) to the start of the next one (or
/// the end of the timeline).
std::optional<Bubble> gap_at(const TimelineTracks& tracks, std::size_t row, Nanoseconds time);

/// Text form for golden files: boxes and runs of equal pixels.
std::string to_text(const TimelineTracks& tracks, const LaneDrawing& drawing);

}  // namespace meshwright::gui
