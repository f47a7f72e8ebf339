/// From tracks and a view to a list of what is to be drawn. Pure: no widgets, no colours, no state;
/// the renderer only fills what stands here.
///
///   arrange_lanes()  rows, counters → lanes from top to bottom: pins first, ranks in order,
///   streams
///                    of open ranks below them
///   draw_lane()      lane and window → how much of every pixel is busy with what, boxes to outline
///                    and label, idle parts to hatch
///
/// Every pixel's colour comes from exact shares, at every zoom: from the coverage pyramid while its
/// bins are narrower than a pixel, else from the slices themselves. Slices of at least kBoxWidth
/// pixels are boxes besides: they get an edge and, if there is room, a name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gui/timeline_causes.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright::gui {

/// What part of time is `width` pixels wide.
struct TimeWindow {
  Nanoseconds from, to;
  int width = 0;
  friend bool operator==(const TimeWindow&, const TimeWindow&) = default;

  Nanoseconds span() const { return to - from; }
  double nanoseconds_per_pixel() const {
    return width > 0 ? static_cast<double>(span().value) / width : 1.0;
  }
  /// May lie outside [0, width).
  double pixel_of(Nanoseconds time) const {
    return static_cast<double>((time - from).value) / nanoseconds_per_pixel();
  }
  Nanoseconds time_at(double pixel) const;
};

inline constexpr Nanoseconds kShortestWindow{100};
/// The same window with `time` still at its pixel and `factor` times as long, within
/// [-margin, end + margin] where margin is a tenth of all.
TimeWindow zoomed(const TimeWindow& window, Nanoseconds time, double factor, Nanoseconds end);
TimeWindow panned(const TimeWindow& window, Nanoseconds by, Nanoseconds end);
/// All of it, and a little more on either side.
TimeWindow whole(Nanoseconds end, int width);

// ---- lanes --------------------------------------------------------------------------------------

enum class LaneKind : std::uint8_t { kSlices, kMemory, kInFlight, kLinks, kDifference };
enum class LaneOrder : std::uint8_t { kRank, kStage, kStraggler };
/// Curves under the rows of a rank: none, memory, or also micro-batches in flight and streams.
enum class LaneCounters : std::uint8_t { kNone, kMemory, kAll };

struct Lane {
  LaneKind kind = LaneKind::kSlices;
  std::int32_t row = -1;    ///< in tracks.rows; counters: the compute row of their rank
  std::int32_t other = -1;  ///< kDifference: row of the measured tracks
  std::int32_t rank = -1;
  int top = 0, height = 0;
  bool is_measured = false;  ///< row counts in the second tracks of a comparison
  bool is_pinned = false;
  bool leads_rank = false;  ///< first lane of its rank: carries the rank's name
  bool can_open = false;    ///< leads a rank with more streams
  bool is_open = false;
  friend bool operator==(const Lane&, const Lane&) = default;
};

struct LaneSizes {
  int compute = 24, stream = 12, counter = 44, difference = 16, gap = 2, rank_gap = 6;
  friend bool operator==(const LaneSizes&, const LaneSizes&) = default;
};

struct LaneOptions {
  std::vector<std::size_t> pinned;    ///< rows, in the order in which they were pinned
  std::set<std::int32_t> open_ranks;  ///< streams shown
  bool all_open = false;
  bool fold_replicas = true;  ///< replica 0 only
  LaneCounters counters = LaneCounters::kNone;
  LaneOrder order = LaneOrder::kRank;
  LaneSizes sizes;
  friend bool operator==(const LaneOptions&, const LaneOptions&) = default;
};

struct LaneArrangement {
  std::vector<Lane> lanes;  ///< from top to bottom; pinned ones first
  int pinned_height = 0;    ///< of the pinned ones, which do not scroll
  int height = 0;           ///< of all, pinned ones counted
  std::size_t folded_ranks = 0;
  friend bool operator==(const LaneArrangement&, const LaneArrangement&) = default;
};

LaneArrangement arrange_lanes(const TimelineTracks& tracks, const LaneOptions& options);
/// Predicted row, measured row, difference; by rank.
LaneArrangement arrange_comparison(const TimelineTracks& predicted, const TimelineTracks& measured,
                                   const LaneOptions& options);
/// Lane at `y`, where lanes behind the pinned ones are scrolled up by `scroll`.
std::optional<std::size_t> lane_at(const LaneArrangement& arrangement, int y, int scroll);

// ---- draw lists ---------------------------------------------------------------------------------

inline constexpr double kBoxWidth = 3.0;     ///< narrower slices are folded
inline constexpr double kLabelWidth = 14.0;  ///< narrower boxes have no name
inline constexpr double kHatchWidth = 5.0;   ///< narrower idle parts are not hatched
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
  std::size_t folded = 0;     ///< visible slices that are no boxes
  bool from_pyramid = false;  ///< shares are sums of bins; slices were not looked at
};

/// `reuse` keeps its memory from call to call. O(width) from the pyramid, else O(visible slices),
/// at most about 16 a pixel.
void draw_lane(const TimelineTracks& tracks, std::size_t row, const TimeWindow& window,
               const TimelineCauses* causes, LaneDrawing& reuse);

/// The slice that the pixel is drawn for: the one under its middle, else the one that covers most
/// of it.
std::optional<std::size_t> slice_at_pixel(const TimelineTracks& tracks, std::size_t row,
                                          const TimeWindow& window, double x);
/// Gap of the row that holds `time`: from the end of a slice (or 0) to the start of the next (or
/// the end of all).
std::optional<Bubble> gap_at(const TimelineTracks& tracks, std::size_t row, Nanoseconds time);

/// Readable, for golden files: boxes and runs of equal pixels.
std::string to_text(const TimelineTracks& tracks, const LaneDrawing& drawing);

}  // namespace meshwright::gui
