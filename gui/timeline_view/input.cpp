/// Input events of a TimelineView, passed on to its parts.
#include <QContextMenuEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QWheelEvent>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/tip.hpp"

namespace meshwright::gui {

void TimelineView::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  if (state_.is_empty()) return;
  parts_->pointer.press(event->position().toPoint(), event->button(), event->modifiers());
  event->accept();
}

void TimelineView::mouseMoveEvent(QMouseEvent* event) {
  if (state_.is_empty()) return;
  TimelinePointer& pointer = parts_->pointer;
  const QRegion before = hover_region(state_, pointer, font(), size());
  pointer.move(event->position().toPoint());
  update(before + hover_region(state_, pointer, font(), size()));
}

void TimelineView::mouseReleaseEvent(QMouseEvent* event) {
  if (!state_.is_empty()) parts_->pointer.release(event->position().toPoint());
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent* event) {
  if (!state_.is_empty() && event->button() == Qt::LeftButton)
    parts_->pointer.double_click(event->position().toPoint());
}

void TimelineView::leaveEvent(QEvent*) { parts_->pointer.leave(); }

void TimelineView::wheelEvent(QWheelEvent* event) {
  if (state_.is_empty()) return;
  const QPoint delta = event->pixelDelta().isNull() ? event->angleDelta() : event->pixelDelta() * 2;
  parts_->pointer.turn_wheel(event->position(), delta, event->modifiers());
  event->accept();
}

void TimelineView::contextMenuEvent(QContextMenuEvent* event) {
  if (state_.is_empty()) return;
  parts_->pointer.put(event->pos());
  QMenu menu(this);
  if (const auto pipeline_rank = parts_->pointer.hovered_pipeline_rank()) {
    const auto add = [&](const QString& text, double factor) {
      connect(menu.addAction(text), &QAction::triggered, this,
              [this, pipeline_rank = *pipeline_rank, factor] {
                state_.editing.request_slowdown(pipeline_rank, factor);
              });
    };
    add(tr("Slow down pipeline rank %1 by 20 %").arg(*pipeline_rank), 1.2);
    add(tr("Reset the speed of pipeline rank %1").arg(*pipeline_rank), 1.0);
    menu.addSeparator();
  }
  menu.addActions(actions());
  menu.exec(event->globalPos());
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  HeldKeys& keys = parts_->keys;
  if ((event->modifiers() & ~Qt::ShiftModifier) == Qt::NoModifier && !state_.is_empty()) {
    if (event->isAutoRepeat() && keys.is_moving()) return;
    keys.set_stepwise(state_.appearance.has_reduced_motion());
    if (keys.press(event->key(), event->nativeScanCode())) return;
  }
  constexpr double kPan = 0.1;
  switch (event->key()) {
    case Qt::Key_Left:
      state_.viewport.pan_by(-kPan * state_.viewport.window().width);
      return;
    case Qt::Key_Right:
      state_.viewport.pan_by(kPan * state_.viewport.window().width);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void TimelineView::keyReleaseEvent(QKeyEvent* event) {
  if (event->isAutoRepeat()) return;
  if (!parts_->keys.release(event->key(), event->nativeScanCode())) QWidget::keyReleaseEvent(event);
}

void TimelineView::focusOutEvent(QFocusEvent* event) {
  parts_->keys.release_all();
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace meshwright::gui
