/// Mouse input of a TimelineView. The bindings follow Perfetto.
#include <QApplication>
#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline/ruler.hpp"
#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

constexpr int kGrab = 5;          ///< grab distance of cursors in pixels
constexpr int kHandleWidth = 12;  ///< at the right edge of the gutter

}  // namespace

TimelineTarget TimelineView::target_at(QPoint position) const {
  const Parts& p = *parts_;
  TimelineTarget target;
  const TimelineGeometry geometry = geometry_of_parts();
  if (p.arrangement == nullptr || p.tracks == nullptr) return target;
  if (!geometry.body.contains(position) && !geometry.gutter.contains(position)) return target;
  target.lane = lane_at(*p.arrangement, position.y() - geometry.body.top(), p.scroll());
  if (!target.lane || !geometry.body.contains(position)) return target;
  const Lane& lane = p.arrangement->lanes[*target.lane];
  if (lane.kind != LaneKind::kSlices) return target;
  const TimelineTracks& tracks = *p.tracks_of(lane);
  const TimeWindow window = p.window_of(lane);
  const double x = position.x() - geometry.body.left();
  const auto row = static_cast<std::size_t>(lane.row);
  target.slice = slice_at_pixel(tracks, row, window, x);
  if (!target.slice && tracks.rows[row].is_compute)
    target.bubble = gap_at(tracks, row, window.time_at(x + 0.5));
  return target;
}

/// The lane index of the stage handle under the pointer.
std::optional<std::size_t> TimelineView::handle_at(QPoint position) const {
  const Parts& p = *parts_;
  if (!p.editable || position.x() >= TimelineGeometry::kGutter ||
      position.x() < TimelineGeometry::kGutter - kHandleWidth)
    return std::nullopt;
  const TimelineTarget target = target_at(position);
  if (!target.lane) return std::nullopt;
  const Lane& lane = p.arrangement->lanes[*target.lane];
  const bool has_stage =
      lane.leads_rank && p.tracks_of(lane)->rows[static_cast<std::size_t>(lane.row)].stage >= 0;
  return has_stage ? target.lane : std::nullopt;
}

void TimelineView::hover_at(QPoint position) {
  Parts& p = *parts_;
  QRegion dirty = hover_region();
  p.pointer = position;
  const TimelineTarget target = target_at(position);
  const bool changed = !(target == p.hover);
  p.hover = target;
  dirty += hover_region();
  update(dirty);
  if (!changed) return;
  const bool measured = target.lane && p.arrangement->lanes[*target.lane].is_measured;
  Q_EMIT slice_hovered(target.slice && !measured ? static_cast<qint64>(*target.slice) : -1);
  if (target.bubble) Q_EMIT bubble_hovered(target.bubble->slice_after);
  Q_EMIT hover_text_changed(tip_text());
  setCursor(handle_at(position) ? Qt::SizeHorCursor : Qt::ArrowCursor);
}

TimelineArea TimelineView::area_between(QPoint a, QPoint b) const {
  const Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  const QRect box = QRect(a, b).normalized().intersected(geometry.body);
  TimelineArea area{.rows = {},
                    .from = p.window.time_at(box.left() - geometry.body.left()),
                    .to = p.window.time_at(box.right() + 1 - geometry.body.left())};
  area.from = std::max(area.from, Nanoseconds(0));
  area.to = std::max(area.from, std::min(area.to, p.tracks->end));
  for (const Lane& lane : p.arrangement->lanes) {
    const int top = geometry.body.top() + lane.top - (lane.is_pinned ? 0 : p.scroll());
    if (lane.kind == LaneKind::kSlices && !lane.is_measured && top <= box.bottom() &&
        top + lane.height > box.top())
      area.rows.push_back(static_cast<std::size_t>(lane.row));
  }
  std::sort(area.rows.begin(), area.rows.end());
  area.rows.erase(std::unique(area.rows.begin(), area.rows.end()), area.rows.end());
  return area;
}

// ---- press, drag, release -----------------------------------------------------------------------

void TimelineView::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  if (parts_->tracks == nullptr) return;
  begin_press(event->position().toPoint(), event->button(), event->modifiers());
  event->accept();
}

void TimelineView::begin_press(QPoint position, Qt::MouseButton button,
                               Qt::KeyboardModifiers modifiers) {
  Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  p.press = p.drag_to = position;
  p.press_window = p.window;
  p.press_scroll = p.scroll();
  p.pressed = target_at(position);
  p.drag = TimelineDrag::kNone;
  if (button == Qt::MiddleButton || (button == Qt::LeftButton && (modifiers & Qt::ShiftModifier) &&
                                     geometry.body.contains(position))) {
    p.drag = TimelineDrag::kPan;
    setCursor(Qt::ClosedHandCursor);
    return;
  }
  if (button != Qt::LeftButton) return;
  if (geometry.overview.contains(position)) {
    p.drag = TimelineDrag::kOverview;
    drag_to(position);
  } else if (geometry.ruler.contains(position)) {
    const auto near = [&](const std::optional<Nanoseconds>& cursor) {
      return cursor && std::abs(p.window.pixel_of(*cursor) + geometry.body.left() - position.x()) <=
                           kGrab + 2;
    };
    const bool second = near(p.cursor_b) || (!near(p.cursor_a) && (modifiers & Qt::ShiftModifier));
    p.drag = second ? TimelineDrag::kCursorB : TimelineDrag::kCursorA;
    drag_to(position);
  } else if (handle_at(position)) {
    p.drag = TimelineDrag::kSlowdown;
    p.slowdown = 1.0;
    const Lane& lane = p.arrangement->lanes[*handle_at(position)];
    p.slowed_stage = p.tracks_of(lane)->rows[static_cast<std::size_t>(lane.row)].stage;
  } else {
    p.drag = TimelineDrag::kPress;
  }
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  Parts& p = *parts_;
  const QPoint position = event->position().toPoint();
  if (p.tracks == nullptr) return;
  if (p.drag == TimelineDrag::kNone) {
    hover_at(position);
    return;
  }
  p.pointer = position;
  if (p.drag == TimelineDrag::kPress) {
    if ((position - p.press).manhattanLength() < QApplication::startDragDistance()) return;
    if (!geometry_of_parts().body.contains(p.press)) return;
    const bool moves_selected = p.editable && p.pressed.slice && p.slice == p.pressed.slice &&
                                is_pass(p.tracks->kind[*p.pressed.slice]);
    p.drag = moves_selected ? TimelineDrag::kOrder : TimelineDrag::kArea;
  }
  drag_to(position);
}

void TimelineView::drag_to(QPoint position) {
  Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  p.drag_to = position;
  const Nanoseconds at = p.window.time_at(position.x() - geometry.body.left());
  switch (p.drag) {
    case TimelineDrag::kPan: {
      const Nanoseconds by =
          p.press_window.time_at(p.press.x()) - p.press_window.time_at(position.x());
      set_window(panned(p.press_window, by, p.tracks->end));
      p.scroll_bar->setValue(p.press_scroll + p.press.y() - position.y());
      break;
    }
    case TimelineDrag::kOverview: {
      const TimeWindow all = whole(p.tracks->end, geometry.overview.width());
      const Nanoseconds middle = all.time_at(position.x() - geometry.overview.left());
      set_window(panned(p.window, middle - (p.window.from + p.window.span() / 2), p.tracks->end));
      break;
    }
    case TimelineDrag::kCursorA:
      set_cursors(std::clamp(at, Nanoseconds(0), p.tracks->end), p.cursor_b);
      break;
    case TimelineDrag::kCursorB:
      set_cursors(p.cursor_a, std::clamp(at, Nanoseconds(0), p.tracks->end));
      break;
    case TimelineDrag::kSlowdown: {
      // 200 pixels to the right double the time.
      const double exponent = (position.x() - p.press.x()) / 200.0;
      p.slowdown = std::clamp(std::round(std::exp2(exponent) * 20) / 20, 0.25, 8.0);
      Q_EMIT stage_slowdown_requested(p.slowed_stage, p.slowdown, false);
      Q_EMIT hover_text_changed(tip_text());
      break;
    }
    case TimelineDrag::kOrder: {
      const std::size_t slice = *p.pressed.slice;
      const Nanoseconds moved = at - p.window.time_at(p.press.x() - geometry.body.left());
      const Nanoseconds middle =
          p.tracks->start_of(slice) + p.tracks->duration_of(slice) / 2 + moved;
      const auto edit = order_edit_at(*p.tracks, slice, middle);
      if (edit != p.order_edit) p.order_problem = edit && p.judge ? p.judge(*edit) : QString();
      p.order_edit = edit;
      Q_EMIT hover_text_changed(tip_text());
      break;
    }
    case TimelineDrag::kNone:
    case TimelineDrag::kPress:
    case TimelineDrag::kArea:
      break;
  }
  update();
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  Parts& p = *parts_;
  const QPoint position = event->position().toPoint();
  if (p.tracks == nullptr || p.drag == TimelineDrag::kNone) return;
  if (p.drag == TimelineDrag::kPress)
    click(position, event->modifiers());
  else
    end_drag(position);
  p.drag = TimelineDrag::kNone;
  unsetCursor();
  hover_at(position);
}

void TimelineView::end_drag(QPoint position) {
  Parts& p = *parts_;
  switch (p.drag) {
    case TimelineDrag::kArea: {
      const TimelineArea area = area_between(p.press, position);
      if (!area.rows.empty() && area.from < area.to) select_area(area);
      break;
    }
    case TimelineDrag::kSlowdown: {
      const int stage = p.slowed_stage;
      const double factor = p.slowdown;
      p.drag = TimelineDrag::kNone;
      Q_EMIT stage_slowdown_requested(stage, factor, true);
      break;
    }
    case TimelineDrag::kOrder: {
      const std::optional<OrderEdit> edit = p.order_edit;
      const bool sound = p.order_problem.isEmpty();
      p.order_edit.reset();
      p.order_problem.clear();
      if (edit && sound) Q_EMIT order_edited(*edit);
      break;
    }
    default:
      break;
  }
}

void TimelineView::click(QPoint position, Qt::KeyboardModifiers) {
  Parts& p = *parts_;
  const TimelineGeometry geometry = geometry_of_parts();
  if (geometry.gutter.contains(position)) {
    click_gutter(position);
    return;
  }
  if (!geometry.body.contains(position)) return;
  const TimelineTarget target = target_at(position);
  if (target.lane && p.arrangement->lanes[*target.lane].is_measured) {
    // A measured slice selects its predicted counterpart.
    if (target.slice) select_slice(p.predicted_of(*target.slice));
    return;
  }
  if (target.slice) {
    select_slice(target.slice);
  } else if (target.bubble) {
    // A second click on the same bubble goes to the slice that it waits for.
    if (p.bubble == target.bubble && p.causes != nullptr && target.bubble->slice_after >= 0) {
      const auto chain = chain_of_causes(*p.causes, *p.tracks,
                                         static_cast<std::size_t>(target.bubble->slice_after));
      if (!chain.empty()) {
        go_to_slice(chain.front());
        return;
      }
    }
    select_bubble(*target.bubble);
  } else {
    clear_selection();
  }
}

void TimelineView::click_gutter(QPoint position) {
  Parts& p = *parts_;
  const TimelineTarget target = target_at(position);
  if (!target.lane) return;
  const Lane lane = p.arrangement->lanes[*target.lane];
  if (lane.can_open && position.x() < 20) {
    if (!p.options.open_ranks.erase(lane.rank)) p.options.open_ranks.insert(lane.rank);
    arrange();
    refresh();
  }
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  Parts& p = *parts_;
  const QPoint position = event->position().toPoint();
  const TimelineGeometry geometry = geometry_of_parts();
  if (p.tracks == nullptr || event->button() != Qt::LeftButton) return;
  p.drag = TimelineDrag::kNone;
  if (geometry.ruler.contains(position)) {
    set_cursors(std::nullopt, std::nullopt);
  } else if (geometry.overview.contains(position)) {
    show_all();
  } else if (geometry.gutter.contains(position)) {
    const TimelineTarget target = target_at(position);
    if (target.lane && p.arrangement->lanes[*target.lane].can_open) {
      const std::int32_t rank = p.arrangement->lanes[*target.lane].rank;
      if (!p.options.open_ranks.erase(rank)) p.options.open_ranks.insert(rank);
      arrange();
      refresh();
    }
  } else if (target_at(position).slice) {
    click(position, event->modifiers());
    if (p.slice) fit_selection();
  }
}

void TimelineView::leaveEvent(QEvent*) {
  Parts& p = *parts_;
  p.pointer.reset();
  p.hover = {};
  update();
  Q_EMIT slice_hovered(-1);
  Q_EMIT hover_text_changed(QString());
}

/// Menu entries that turn a stage into a straggler.
void TimelineView::add_stage_entries(QMenu& menu) {
  const Parts& p = *parts_;
  if (!p.editable || !p.hover.lane) return;
  const Lane& lane = p.arrangement->lanes[*p.hover.lane];
  const std::int32_t stage = p.tracks_of(lane)->rows[static_cast<std::size_t>(lane.row)].stage;
  if (lane.is_measured || stage < 0) return;
  const auto add = [&](const QString& text, double factor) {
    connect(menu.addAction(text), &QAction::triggered, this,
            [this, stage, factor] { Q_EMIT stage_slowdown_requested(stage, factor, true); });
  };
  add(tr("Slow down pipeline rank %1 by 20 %").arg(stage), 1.2);
  add(tr("Reset the speed of pipeline rank %1").arg(stage), 1.0);
  menu.addSeparator();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  p.pointer = event->pos();
  p.hover = target_at(event->pos());
  QMenu menu(this);
  add_stage_entries(menu);
  menu.addActions(actions());
  menu.exec(event->globalPos());
}

// ---- wheel --------------------------------------------------------------------------------------

void TimelineView::wheelEvent(QWheelEvent* event) {
  Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  const TimelineGeometry geometry = geometry_of_parts();
  const QPoint delta = event->pixelDelta().isNull() ? event->angleDelta() : event->pixelDelta() * 2;
  constexpr double kNotch = 120;
  const int along = delta.x() != 0 ? delta.x() : delta.y();
  if (event->modifiers() & Qt::ControlModifier)
    zoom_by(std::exp2(-delta.y() / kNotch / 2), event->position().x() - geometry.body.left());
  else if (delta.x() != 0 || (event->modifiers() & Qt::ShiftModifier))
    pan_by(-along / kNotch * 80);
  else if (!p.scroll_bar->isHidden())
    p.scroll_bar->setValue(p.scroll() - static_cast<int>(delta.y() / kNotch * 60));
  event->accept();
}

void TimelineView::zoom_by(double factor, double body_x) {
  const Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  const double x = std::clamp(body_x, 0.0, static_cast<double>(p.window.width));
  set_window(zoomed(p.window, p.window.time_at(x), factor, p.tracks->end));
}

void TimelineView::pan_by(double pixels) {
  const Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  const Nanoseconds by(
      static_cast<std::int64_t>(std::llround(pixels * p.window.nanoseconds_per_pixel())));
  set_window(panned(p.window, by, p.tracks->end));
}

}  // namespace meshwright::gui
