/// Keys that act while held. By default these are the keys at the physical positions of W, A, S and
/// D, independent of the keyboard layout.
#include <QKeyEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

/// Scan codes of W, S, A, D on Linux (evdev code + 8, on X11 and Wayland).
constexpr std::array<quint32, 4> kScanCodes{25, 39, 38, 40};
constexpr std::array<int, 4> kKeys{Qt::Key_W, Qt::Key_S, Qt::Key_A, Qt::Key_D};
enum HeldKey : std::size_t { kIn, kOut, kLeft, kRight };

}  // namespace

bool TimelineView::hold_key(int key, quint32 scan_code, bool down) {
  Parts& p = *parts_;
  // Without a scan code (tests, remote desktops) compare the letter.
  std::size_t which = kKeys.size();
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const bool is_own = p.held_keys[i] != 0;
    if (is_own ? key == p.held_keys[i]
               : (scan_code != 0 ? scan_code == kScanCodes[i] : key == kKeys[i]))
      which = i;
  }
  if (which == kKeys.size() || p.tracks == nullptr) return false;
  if (down && p.reduced_motion) {
    const double x = p.pointer ? p.pointer->x() - TimelineGeometry::kGutter : p.window.width / 2.0;
    if (which == kIn || which == kOut) zoom_by(which == kIn ? 0.7 : 1 / 0.7, x);
    if (which == kLeft || which == kRight) pan_by((which == kLeft ? -0.15 : 0.15) * p.window.width);
    return true;
  }
  p.held[which] = down;
  const bool any = std::any_of(p.held.begin(), p.held.end(), [](bool held) { return held; });
  if (any && !p.motion.isActive()) {
    p.motion_clock.start();
    p.motion.start();
    move_on();
  } else if (!any) {
    p.motion.stop();
    p.speed = 0;
  }
  return true;
}

/// One frame of continuous movement; accelerates while keys are held.
void TimelineView::move_on() {
  Parts& p = *parts_;
  const double seconds =
      std::clamp(static_cast<double>(p.motion_clock.restart()) / 1000, 0.016, 0.1);
  p.speed = std::min(3.0, p.speed + 4 * seconds + (p.speed == 0 ? 1.0 : 0.0));
  const double x = p.pointer ? p.pointer->x() - TimelineGeometry::kGutter : p.window.width / 2.0;
  if (p.held[kIn] != p.held[kOut])
    zoom_by(std::exp2((p.held[kIn] ? -1.6 : 1.6) * p.speed * seconds), x);
  if (p.held[kLeft] != p.held[kRight])
    pan_by((p.held[kLeft] ? -0.5 : 0.5) * p.speed * seconds * p.window.width);
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
  const Qt::KeyboardModifiers others = event->modifiers() & ~Qt::ShiftModifier;
  if (others == Qt::NoModifier && event->isAutoRepeat() && parts_->motion.isActive()) return;
  if (others == Qt::NoModifier && hold_key(event->key(), event->nativeScanCode(), true)) return;
  switch (event->key()) {
    case Qt::Key_Left:
      pan_by(-0.1 * parts_->window.width);
      return;
    case Qt::Key_Right:
      pan_by(0.1 * parts_->window.width);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void TimelineView::keyReleaseEvent(QKeyEvent* event) {
  if (event->isAutoRepeat()) return;
  if (!hold_key(event->key(), event->nativeScanCode(), false)) QWidget::keyReleaseEvent(event);
}

void TimelineView::focusOutEvent(QFocusEvent* event) {
  parts_->held = {};
  parts_->motion.stop();
  parts_->speed = 0;
  QWidget::focusOutEvent(event);
  update();
}

}  // namespace meshwright::gui
