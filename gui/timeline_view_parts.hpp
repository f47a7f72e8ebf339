/// What a TimelineView holds; for its own source files only.
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

#include "gui/timeline_glide.hpp"
#include "gui/timeline_paint_queue.hpp"
#include "gui/timeline_view.hpp"

namespace meshwright::gui {

/// Where things are, in pixels of the widget.
struct TimelineGeometry {
  static constexpr int kGutter = 132, kOverview = 30, kRuler = 24;
  QRect overview, ruler, gutter, body;
};

enum class TimelineDrag : std::uint8_t {
  kNone,
  kPress,  ///< a button is down; nothing has moved yet
  kArea,
  kPan,
  kOverview,
  kCursorA,
  kCursorB,
  kSlowdown,  ///< a stage's handle
  kOrder      ///< a slice to another place
};

/// What lies under the pointer.
struct TimelineTarget {
  std::optional<std::size_t> lane;
  std::optional<std::size_t> slice;  ///< of the lane's tracks
  std::optional<Bubble> bubble;
  friend bool operator==(const TimelineTarget&, const TimelineTarget&) = default;
};

struct TimelineView::Parts {
  // What is shown.
  std::shared_ptr<const TimelineTracks> tracks, measured, ghost;
  std::shared_ptr<const TimelineCauses> causes;
  std::shared_ptr<const TimelineComparison> comparison;
  QString placeholder;

  // How it is shown.
  LaneOptions options;
  bool counters_where_room = false;
  std::shared_ptr<InFlightCurves> in_flight;  ///< of `tracks`
  std::shared_ptr<const LaneArrangement> arrangement;
  TimeWindow window{Nanoseconds(0), Nanoseconds(1'000), 1};
  SceneStyle style;
  std::shared_ptr<const LabelFont> font;
  bool arrows = true, reduced_motion = false;

  // What is chosen.
  std::optional<std::size_t> slice;
  std::optional<std::size_t> measured_slice;  ///< paired with `slice`
  std::optional<Bubble> bubble;
  std::optional<TimelineArea> area;
  std::optional<Nanoseconds> cursor_a, cursor_b;
  std::vector<std::uint32_t> hits;
  std::size_t hit = 0;
  std::optional<std::size_t> bubble_index;  ///< in causes->bubbles

  // The pointer.
  TimelineTarget hover;
  std::optional<QPoint> pointer;
  TimelineDrag drag = TimelineDrag::kNone;
  QPoint press;
  TimeWindow press_window;
  int press_scroll = 0;
  TimelineTarget pressed;
  QPoint drag_to;
  double slowdown = 1.0;
  std::int32_t slowed_stage = -1;  ///< stays while new tracks come in answer to the drag
  std::optional<OrderEdit> order_edit;
  QString order_problem;
  bool editable = false;
  std::function<QString(const OrderEdit&)> judge;

  // Pictures.
  TimelinePaintQueue* queue = nullptr;
  QImage body_image, overview_image;
  std::optional<TimelineScene> body_scene;
  QScrollBar* scroll_bar = nullptr;

  // Slices on their way to new places; empty: none.
  std::vector<GlidingSlice> gliding;
  QBasicTimer glide;
  QElapsedTimer glide_clock;

  // Smooth zoom and pan while W, A, S, D are held.
  QTimer motion;
  QElapsedTimer motion_clock;
  std::array<bool, 4> held{};      ///< W, S, A, D
  std::array<int, 4> held_keys{};  ///< the user's own; 0: by place
  double speed = 0;

  TimelineScene scene(const TimelineGeometry& geometry) const;
  int scroll() const { return scroll_bar == nullptr ? 0 : scroll_bar->value(); }
  const TimelineTracks* tracks_of(const Lane& lane) const {
    return lane.is_measured ? measured.get() : tracks.get();
  }
  /// The picture at hand shows what is looked at.
  bool body_is_of_now() const;
  TimeWindow window_of(const Lane& lane) const;
  /// Pairs of the comparison; linear in the slices of a row, and logarithmic.
  std::optional<std::size_t> measured_of(std::size_t predicted) const;
  std::optional<std::size_t> predicted_of(std::size_t of_measured) const;
  std::vector<SlicePair>::const_iterator first_pair_from(std::size_t of_measured) const;
  /// On the screen, empty if its row is not; times are those of its own tracks.
  QRectF box_of(bool is_measured, std::size_t row, Nanoseconds from, Nanoseconds to,
                const TimelineGeometry& geometry) const;
  QRectF box_of_slice(bool is_measured, std::size_t one, const TimelineGeometry& geometry) const;
};

/// One line on a slice, on a gap and on the mixture of a pixel; translated.
QString describe_slice(const TimelineTracks& tracks, const TimelineCauses* causes,
                       std::size_t slice);
QString describe_bubble(const TimelineTracks& tracks, const TimelineCauses* causes,
                        const Bubble& bubble);
QString describe_mixture(const TimelineTracks& tracks, std::size_t row, Nanoseconds from,
                         Nanoseconds to);
/// "B7 of stage 3", "message 7 to stage 2".
QString describe_cause(const TimelineTracks& tracks, std::size_t slice);

}  // namespace meshwright::gui
