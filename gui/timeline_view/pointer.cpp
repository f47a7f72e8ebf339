#include "gui/timeline_view/pointer.hpp"

#include <QApplication>
#include <algorithm>
#include <cmath>

#include "gui/timeline_view/tip.hpp"

namespace meshwright::gui {
namespace {

constexpr int kGrab = 7;          ///< grab distance of cursors in pixels
constexpr int kOpenerWidth = 20;  ///< of the triangle that shows a rank's streams

}  // namespace

Nanoseconds TimelinePointer::time_at(QPoint position) const {
  return state_.viewport.window().time_at(position.x() - state_.geometry.body.left());
}

std::optional<std::size_t> TimelinePointer::hovered_row() const {
  if (!hovered_.lane) return std::nullopt;
  const Lane& lane = state_.lanes.arrangement()->lanes[*hovered_.lane];
  if (lane.is_measured) return std::nullopt;
  return static_cast<std::size_t>(lane.row);
}

std::optional<std::int32_t> TimelinePointer::hovered_pipeline_rank() const {
  const auto row = hovered_row();
  if (!row || !state_.editing.is_editable()) return std::nullopt;
  const std::int32_t pipeline_rank = state_.content.tracks->rows[*row].pipeline_rank;
  if (pipeline_rank < 0) return std::nullopt;
  return pipeline_rank;
}

// ---- hovering -----------------------------------------------------------------------------------

void TimelinePointer::hover(QPoint position) {
  position_ = position;
  const TimelineFrame frame = state_.frame();
  const TimelineTarget target = target_at(frame, position);
  if (target == hovered_) return;
  hovered_ = target;
  const bool measured = target.lane && frame.arrangement->lanes[*target.lane].is_measured;
  Q_EMIT slice_hovered(target.slice && !measured ? static_cast<qint64>(*target.slice) : -1);
  Q_EMIT described(tip_text(state_, *this));
  const bool on_handle = state_.editing.is_editable() && pipeline_rank_handle_at(frame, position);
  Q_EMIT shape_changed(on_handle ? Qt::SizeHorCursor : Qt::ArrowCursor);
}

void TimelinePointer::hover_again() {
  if (position_ && drag_ == TimelineDrag::kNone && !state_.is_empty()) hover(*position_);
}

void TimelinePointer::put(QPoint position) {
  position_ = position;
  hovered_ = target_at(state_.frame(), position);
}

void TimelinePointer::leave() {
  position_.reset();
  hovered_ = {};
  Q_EMIT changed();
  Q_EMIT slice_hovered(-1);
  Q_EMIT described(QString());
}

void TimelinePointer::forget_tracks() {
  hovered_ = {};
  pressed_ = {};
  state_.editing.cancel_order();
  if (drag_ == TimelineDrag::kOrder) drag_ = TimelineDrag::kNone;
}

void TimelinePointer::cancel_drag() {
  drag_ = TimelineDrag::kNone;
  state_.editing.cancel_order();
}

// ---- press, drag, release -----------------------------------------------------------------------

void TimelinePointer::press(QPoint position, Qt::MouseButton button,
                            Qt::KeyboardModifiers modifiers) {
  const TimelineGeometry& geometry = state_.geometry;
  const TimelineFrame frame = state_.frame();
  press_ = drag_to_ = position;
  press_window_ = frame.window;
  press_scroll_ = frame.scroll;
  pressed_ = target_at(frame, position);
  drag_ = TimelineDrag::kNone;
  if (button == Qt::MiddleButton || (button == Qt::LeftButton && (modifiers & Qt::ShiftModifier) &&
                                     geometry.body.contains(position))) {
    drag_ = TimelineDrag::kPan;
    Q_EMIT shape_changed(Qt::ClosedHandCursor);
    return;
  }
  if (button != Qt::LeftButton) return;
  const auto handle =
      state_.editing.is_editable() ? pipeline_rank_handle_at(frame, position) : std::nullopt;
  if (geometry.overview.contains(position)) {
    drag_ = TimelineDrag::kOverview;
    drag_to_position(position);
  } else if (geometry.ruler.contains(position)) {
    drag_ = drag_on_ruler(position, modifiers);
    drag_to_position(position);
  } else if (handle) {
    drag_ = TimelineDrag::kSlowdown;
    state_.editing.begin_slowdown(*handle);
  } else {
    drag_ = TimelineDrag::kPress;
  }
}

/// A cursor near the position, else A, or B with Shift.
TimelineDrag TimelinePointer::drag_on_ruler(QPoint position,
                                            Qt::KeyboardModifiers modifiers) const {
  const auto near = [&](const std::optional<Nanoseconds>& cursor) {
    return cursor && std::abs(state_.viewport.window().pixel_of(*cursor) +
                              state_.geometry.body.left() - position.x()) <= kGrab;
  };
  const bool second = near(state_.selection.cursor_b()) ||
                      (!near(state_.selection.cursor_a()) && (modifiers & Qt::ShiftModifier));
  return second ? TimelineDrag::kCursorB : TimelineDrag::kCursorA;
}

void TimelinePointer::move(QPoint position) {
  if (drag_ == TimelineDrag::kNone) {
    hover(position);
    return;
  }
  position_ = position;
  if (drag_ == TimelineDrag::kPress) {
    if ((position - press_).manhattanLength() < QApplication::startDragDistance()) return;
    if (!state_.geometry.body.contains(press_)) return;
    const bool moves_selected = state_.editing.is_editable() && pressed_.slice &&
                                state_.selection.slice() == pressed_.slice &&
                                is_pass(state_.content.tracks->kind[*pressed_.slice]);
    drag_ = moves_selected ? TimelineDrag::kOrder : TimelineDrag::kArea;
  }
  drag_to_position(position);
}

void TimelinePointer::drag_to_position(QPoint position) {
  const TimelineTracks& tracks = *state_.content.tracks;
  TimelineViewport& viewport = state_.viewport;
  TimelineSelection& selection = state_.selection;
  drag_to_ = position;
  const Nanoseconds at = time_at(position);
  switch (drag_) {
    case TimelineDrag::kPan:
      viewport.pan_from(press_window_,
                        press_window_.time_at(press_.x()) - press_window_.time_at(position.x()));
      state_.lanes.scroll_to(press_scroll_ + press_.y() - position.y());
      break;
    case TimelineDrag::kOverview: {
      const QRect& overview = state_.geometry.overview;
      const TimeWindow all = whole(tracks.end, overview.width());
      const Nanoseconds middle = all.time_at(position.x() - overview.left());
      const TimeWindow& window = viewport.window();
      viewport.pan_from(window, middle - (window.from + window.span() / 2));
      break;
    }
    case TimelineDrag::kCursorA:
      selection.set_cursors(std::clamp(at, Nanoseconds(0), tracks.end), selection.cursor_b());
      break;
    case TimelineDrag::kCursorB:
      selection.set_cursors(selection.cursor_a(), std::clamp(at, Nanoseconds(0), tracks.end));
      break;
    case TimelineDrag::kSlowdown:
      state_.editing.drag_slowdown(position.x() - press_.x());
      Q_EMIT described(tip_text(state_, *this));
      break;
    case TimelineDrag::kOrder: {
      const std::size_t slice = *pressed_.slice;
      const Nanoseconds middle = tracks.start_of(slice) + tracks.duration_of(slice) / 2;
      state_.editing.drag_pass(tracks, slice, middle + at - time_at(press_));
      Q_EMIT described(tip_text(state_, *this));
      break;
    }
    case TimelineDrag::kNone:
    case TimelineDrag::kPress:
    case TimelineDrag::kArea:
      break;
  }
  Q_EMIT changed();
}

void TimelinePointer::release(QPoint position) {
  if (drag_ == TimelineDrag::kNone) return;
  if (drag_ == TimelineDrag::kPress)
    click(position);
  else
    end_drag(position);
  drag_ = TimelineDrag::kNone;
  Q_EMIT shape_changed(Qt::ArrowCursor);
  hover(position);
  Q_EMIT changed();
}

void TimelinePointer::end_drag(QPoint position) {
  switch (drag_) {
    case TimelineDrag::kArea: {
      const TimelineArea area = area_between(state_.frame(), press_, position);
      if (!area.rows.empty() && area.from < area.to) state_.selection.select_area(area);
      break;
    }
    case TimelineDrag::kSlowdown:
      drag_ = TimelineDrag::kNone;
      state_.editing.finish_slowdown();
      break;
    case TimelineDrag::kOrder:
      state_.editing.drop_pass();
      break;
    default:
      break;
  }
}

void TimelinePointer::click(QPoint position) {
  const TimelineFrame frame = state_.frame();
  const TimelineTarget target = target_at(frame, position);
  if (frame.geometry.gutter.contains(position)) {
    if (!target.lane) return;
    const Lane& lane = frame.arrangement->lanes[*target.lane];
    if (lane.can_open && position.x() < kOpenerWidth) state_.lanes.toggle_rank(lane.rank);
    return;
  }
  if (!frame.geometry.body.contains(position)) return;
  TimelineSelection& selection = state_.selection;
  if (target.lane && frame.arrangement->lanes[*target.lane].is_measured) {
    // A measured slice selects its predicted counterpart.
    if (target.slice) selection.select_slice(frame.content.predicted_of(*target.slice));
  } else if (target.slice) {
    selection.select_slice(target.slice);
  } else if (target.bubble) {
    // A second click on the same bubble goes to the slice that it waits for.
    if (selection.bubble() == target.bubble && frame.content.causes != nullptr &&
        target.bubble->slice_after >= 0) {
      const auto chain = chain_of_causes(*frame.content.causes, *frame.content.tracks,
                                         static_cast<std::size_t>(target.bubble->slice_after));
      if (!chain.empty()) {
        state_.navigation.go_to_slice(chain.front());
        return;
      }
    }
    selection.select_bubble(*target.bubble);
  } else {
    selection.clear();
  }
}

void TimelinePointer::double_click(QPoint position) {
  const TimelineFrame frame = state_.frame();
  const TimelineGeometry& geometry = frame.geometry;
  drag_ = TimelineDrag::kNone;
  if (geometry.ruler.contains(position)) {
    state_.selection.set_cursors(std::nullopt, std::nullopt);
  } else if (geometry.overview.contains(position)) {
    state_.viewport.show_all();
  } else if (geometry.gutter.contains(position)) {
    const TimelineTarget target = target_at(frame, position);
    if (!target.lane) return;
    const Lane& lane = frame.arrangement->lanes[*target.lane];
    if (lane.can_open) state_.lanes.toggle_rank(lane.rank);
  } else if (target_at(frame, position).slice) {
    click(position);
    if (state_.selection.slice()) state_.navigation.fit_selection();
  }
}

void TimelinePointer::turn_wheel(QPointF position, QPoint delta, Qt::KeyboardModifiers modifiers) {
  constexpr double kNotch = 120;
  const int along = delta.x() != 0 ? delta.x() : delta.y();
  if (modifiers & Qt::ControlModifier)
    state_.viewport.zoom_by(std::exp2(-delta.y() / kNotch / 2),
                            position.x() - state_.geometry.body.left());
  else if (delta.x() != 0 || (modifiers & Qt::ShiftModifier))
    state_.viewport.pan_by(-along / kNotch * 80);
  else
    state_.lanes.scroll_to(state_.lanes.scroll() - static_cast<int>(delta.y() / kNotch * 60));
}

}  // namespace meshwright::gui
