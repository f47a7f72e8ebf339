/// Private state of TimelineView, for its own source files only.
#pragma once

#include <QBasicTimer>
#include <QElapsedTimer>
#include <QImage>
#include <QPoint>
#include <QPointer>
#include <QRect>
#include <QScrollBar>
#include <QTimer>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "gui/timeline/glide.hpp"
#include "gui/timeline_view/paint_queue.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

/// Layout of the widget in pixels.
struct TimelineGeometry {
  static constexpr int kGutter = 132, kOverview = 30, kRuler = 24;
  QRect overview, ruler, gutter, body;
};

enum class TimelineDrag : std::uint8_t {
  kNone,
  kPress,  ///< button down, not moved yet
  kArea,
  kPan,
  kOverview,
  kCursorA,
  kCursorB,
  kSlowdown,  ///< a stage's handle
  kOrder      ///< a pass to another position
};

/// The items under the pointer.
struct TimelineTarget {
  std::optional<std::size_t> lane;
  std::optional<std::size_t> slice;  ///< of the lane's tracks
  std::optional<Bubble> bubble;
  friend bool operator==(const TimelineTarget&, const TimelineTarget&) = default;
};

struct TimelineView::Parts {
  // Content.
  std::shared_ptr<const TimelineTracks> tracks, measured, ghost;
  std::shared_ptr<const TimelineCauses> causes;
  std::shared_ptr<const TimelineComparison> comparison;
  QString placeholder;

  // Appearance.
  LaneOptions options;
  bool counters_where_room = false;
  std::shared_ptr<InFlightCurves> in_flight;  ///< for `tracks`
  std::shared_ptr<const LaneArrangement> arrangement;
  TimeWindow window{Nanoseconds(0), Nanoseconds(1'000), 1};
  SceneStyle style;
  std::shared_ptr<const LabelFont> font;
  bool arrows = true, reduced_motion = false;

  // Selection.
  std::optional<std::size_t> slice;
  std::optional<std::size_t> measured_slice;  ///< paired with `slice`
  std::optional<Bubble> bubble;
  std::optional<TimelineArea> area;
  std::optional<Nanoseconds> cursor_a, cursor_b;
  std::vector<std::uint32_t> hits;
  std::size_t hit = 0;
  std::optional<std::size_t> bubble_index;  ///< in causes->bubbles

  // Mouse.
  TimelineTarget hover;
  std::optional<QPoint> pointer;
  TimelineDrag drag = TimelineDrag::kNone;
  QPoint press;
  TimeWindow press_window;
  int press_scroll = 0;
  TimelineTarget pressed;
  QPoint drag_to;
  double slowdown = 1.0;
  std::int32_t slowed_stage = -1;  ///< stays valid when dragging causes new tracks
  std::optional<OrderEdit> order_edit;
  QString order_problem;
  bool editable = false;
  std::function<QString(const OrderEdit&)> judge;

  // Painted images.
  TimelinePaintQueue* queue = nullptr;
  QImage body_image, overview_image;
  std::optional<TimelineScene> body_scene;
  QScrollBar* scroll_bar = nullptr;

  // Animated slices; empty if no animation is running.
  std::vector<GlidingSlice> gliding;
  QBasicTimer glide;
  QElapsedTimer glide_clock;

  // Smooth zoom and pan while W, A, S, D are held.
  QTimer motion;
  QElapsedTimer motion_clock;
  std::array<bool, 4> held{};      ///< W, S, A, D
  std::array<int, 4> held_keys{};  ///< user-defined; 0 for the default
  double speed = 0;

  TimelineScene scene(const TimelineGeometry& geometry) const;
  int scroll() const { return scroll_bar == nullptr ? 0 : scroll_bar->value(); }
  const TimelineTracks* tracks_of(const Lane& lane) const {
    return lane.is_measured ? measured.get() : tracks.get();
  }
  /// True if body_image shows the current window.
  bool body_is_of_now() const;
  TimeWindow window_of(const Lane& lane) const;
  /// Pairs of the comparison: measured_of() is linear in
  /// the slices of a row, predicted_of() logarithmic.
  std::optional<std::size_t> measured_of(std::size_t predicted) const;
  std::optional<std::size_t> predicted_of(std::size_t of_measured) const;
  std::vector<SlicePair>::const_iterator first_pair_from(std::size_t of_measured) const;
  /// Rectangle in the widget, empty if the row is not
  /// shown; times are in the clock of the row's tracks.
  QRectF box_of(bool is_measured, std::size_t row, Nanoseconds from, Nanoseconds to,
                const TimelineGeometry& geometry) const;
  QRectF box_of_slice(bool is_measured, std::size_t one, const TimelineGeometry& geometry) const;
};

/// One-line descriptions of a slice, a gap and a time range of a row; translated.
QString describe_slice(const TimelineTracks& tracks, const TimelineCauses* causes,
                       std::size_t slice);
QString describe_bubble(const TimelineTracks& tracks, const TimelineCauses* causes,
                        const Bubble& bubble);
QString describe_mixture(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                         Nanoseconds to);
/// "B7 of stage 3", "message on rank 2 (1 ms)".
QString describe_cause(const TimelineTracks& tracks, std::size_t slice);

}  // namespace meshwright::gui
