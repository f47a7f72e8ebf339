/// The mouse on a timeline: hovering, clicks and drags. The bindings follow Perfetto.
#pragma once

#include <QObject>
#include <QPoint>
#include <QPointF>
#include <QString>
#include <optional>

#include "gui/timeline_view/frame.hpp"
#include "gui/timeline_view/state.hpp"

namespace meshwright::gui {

enum class TimelineDrag : std::uint8_t {
  kNone,
  kPress,  ///< button down, not moved yet
  kArea,
  kPan,
  kOverview,
  kCursorA,
  kCursorB,
  kSlowdown,  ///< the handle of a pipeline rank
  kOrder      ///< a pass to another position
};

class TimelinePointer : public QObject {
  Q_OBJECT
 public:
  explicit TimelinePointer(TimelineState& state) : state_(state) {}

  // ---- events, while there are tracks -----------------------------------------------------------
  void press(QPoint position, Qt::MouseButton button, Qt::KeyboardModifiers modifiers);
  void move(QPoint position);
  void release(QPoint position);
  void double_click(QPoint position);
  void leave();
  /// Moves without telling anyone, for a menu at the position.
  void put(QPoint position);
  /// One notch of a wheel is 120.
  void turn_wheel(QPointF position, QPoint delta, Qt::KeyboardModifiers modifiers);

  // ---- changes of what is under the pointer -----------------------------------------------------
  void forget_hovered() { hovered_ = {}; }
  /// The content has moved under a pointer at rest, by keys for example.
  void hover_again();
  /// The tracks are others; a drag of a handle or of the range goes on.
  void forget_tracks();
  void cancel_drag();

  // ---- state ------------------------------------------------------------------------------------
  const std::optional<QPoint>& position() const { return position_; }
  const TimelineTarget& hovered() const { return hovered_; }
  /// The row of the first tracks under the pointer.
  std::optional<std::size_t> hovered_row() const;
  /// The pipeline rank of the row under the pointer, if it can be slowed down.
  std::optional<std::int32_t> hovered_pipeline_rank() const;
  TimelineDrag drag() const { return drag_; }
  QPoint drag_from() const { return press_; }
  QPoint drag_to() const { return drag_to_; }
  /// The items at drag_from().
  const TimelineTarget& pressed() const { return pressed_; }

 Q_SIGNALS:
  /// -1: no slice under the pointer.
  void slice_hovered(qint64 slice);
  /// One line about the item under the pointer.
  void described(const QString& text);
  void shape_changed(Qt::CursorShape shape);
  /// To be painted again, apart from what is hovered.
  void changed();

 private:
  void hover(QPoint position);
  void drag_to_position(QPoint position);
  void end_drag(QPoint position);
  void click(QPoint position);
  TimelineDrag drag_on_ruler(QPoint position, Qt::KeyboardModifiers modifiers) const;
  Nanoseconds time_at(QPoint position) const;

  TimelineState& state_;
  std::optional<QPoint> position_;
  TimelineTarget hovered_;
  TimelineDrag drag_ = TimelineDrag::kNone;
  QPoint press_, drag_to_;
  TimeWindow press_window_;
  int press_scroll_ = 0;
  TimelineTarget pressed_;
};

}  // namespace meshwright::gui
